"""All models by name: what each is and what it takes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from adgn._util.registry import Registry
from adgn._util.suggestions import did_you_mean, nearest

if TYPE_CHECKING:
    from adgn.nn.network import GraphNetwork, Level


class ModelOptions(BaseModel):
    """The options that every model has; a model's own come on top.

    A default is the setting of the paper's experiments. Values are checked and never converted.

    Example:
        >>> class MyOptions(ModelOptions):
        ...     alpha: float = Field(0.1, ge=0, le=1, description="the share of the first states")
        >>> options = MyOptions(dropout=0.5)
        >>> options.alpha, options.dropout, options.readout
        (0.1, 0.5, 'linear')
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True
    )

    encoder: Literal["linear", "linear_no_bias", "embedding", "none"] | None = Field(
        "linear",
        description="`linear` (no activation); `linear_no_bias`; `embedding`: of integers; `none`: "
        "the features are the states",
    )
    readout: Literal["linear", "linear_no_bias", "mlp", "ridge", "none"] = Field(
        "linear",
        description="`linear`; `linear_no_bias`; `mlp`: two linear layers with LeakyReLU after "
        "each; `ridge`: linear, solved in closed form while all else stays as initialised; `none`",
    )
    dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the first states (see `first_dropout`) and of the last ones dropped "
        "while training",
    )
    first_dropout: Literal["states", "features"] = Field(
        "states",
        description="what the first dropout acts on: `states`, those that the encoder gives; "
        "`features`, before the encoder (of sparse ones the stored entries)",
    )
    train_recurrent: bool = Field(
        True,
        description="`False`: the weights between encoder and readout stay as initialised (for "
        "`adgn`: randomised A-DGN)",
    )

    fully_adjacent: bool = Field(
        False,
        description="the readout of a node also reads the mean of the last states of all nodes: a "
        "last layer on the complete graph, with weights of its own for the node itself",
    )

    @model_validator(mode="after")
    def _ridge_needs_fixed_weights(self) -> "ModelOptions":
        check_ridge(self.readout, self.train_recurrent, self.dropout)
        return self

    def beyond(self, base: "type[ModelOptions]") -> dict[str, Any]:
        """The options that `base` does not have."""
        names = type(self).model_fields.keys() - base.model_fields.keys()
        return {name: getattr(self, name) for name in names}


def check_ridge(readout: str, train_recurrent: bool, dropout: float) -> None:
    """Raises where the weights before a readout in closed form would have to be trained."""
    if readout != "ridge":
        return
    if train_recurrent:
        raise ValueError(
            "readout='ridge' with train_recurrent=True is not valid: the readout is solved once, "
            "for states that do not change. Set train_recurrent=False for random weights before "
            "it, or readout='linear' to train all weights."
        )
    if dropout > 0:
        raise ValueError(
            f"readout='ridge' with dropout={dropout} is not valid: there is no training in which "
            "states could be dropped. Set dropout=0.0."
        )


@dataclass(frozen=True)
class OptionSpec:
    """One option of a model: its name, default and meaning."""

    name: str
    default: Any
    description: str


@dataclass(frozen=True)
class ModelSpec:
    r"""What is known about a model.

    Attributes:
        name: The name for `build_model`.
        network: The class.
        options: The options it takes, as a pydantic model.
        title: The name people know it by.
        paper: A link to where it was proposed.
        rule: One layer in LaTeX: the states $\mathbf{X}^\ell$ from $\mathbf{X}^{\ell-1}$.
        hops_per_layer: How far a layer's outputs look; the receptive field of $L$ layers is
            $L$ times as much. `None`: at all nodes of the graph.
        memory: What a layer keeps for the backward pass, with $n$ nodes, $m$ edges, size $d$.
        time: The time of a layer.
        note: What a user should know besides, in Markdown.

    Example:
        >>> spec = model_spec("grand")
        >>> spec.title, spec.receptive_field, spec.edge_features
        ('GRAND', '4L', False)
        >>> spec.parse({"heads": 2}).epsilon  # what is not given has its default
        0.1
    """

    name: str
    network: "type[GraphNetwork]"
    options: type[ModelOptions]
    title: str = ""
    paper: str = ""
    rule: str = ""
    hops_per_layer: int | None = 1
    memory: str = ""
    time: str = ""
    note: str = ""

    @property
    def edge_features(self) -> bool:
        """Whether the model can read edge features."""
        return "edge_dim" in self.options.model_fields

    @property
    def receptive_field(self) -> str:
        """How many hops away the outputs of `L` layers look."""
        if self.hops_per_layer is None:
            return r"\text{all nodes}"
        return {0: "0", 1: "L"}.get(self.hops_per_layer, f"{self.hops_per_layer}L")

    def describe_options(self) -> list[OptionSpec]:
        """Each option with its default and meaning, the model's own first."""
        common = ModelOptions.model_fields
        fields = self.options.model_fields
        ordered = [*(name for name in fields if name not in common), *common]
        defaults = {name: fields[name].get_default(call_default_factory=True) for name in ordered}
        return [OptionSpec(n, defaults[n], fields[n].description or "") for n in ordered]

    def parse(self, options: Mapping[str, Any]) -> ModelOptions:
        """The options with defaults filled in; an error names the wrong one and lists all."""
        try:
            return self.options(**options)
        except ValidationError as error:
            raise ValueError(self._explain(error, options)) from None

    def _explain(self, error: ValidationError, options: Mapping[str, Any]) -> str:
        problems = []
        for problem in error.errors():
            option = str(problem["loc"][0]) if problem["loc"] else ""
            if problem["type"] == "extra_forbidden":
                hint = did_you_mean(nearest(option, self.options.model_fields))
                text = f"{self.name} has no option {option!r}.{hint}"
            elif option:
                reason = problem["msg"][0].lower() + problem["msg"][1:]
                text = f"{option}={options.get(option)!r} is not valid for {self.name}: {reason}."
            else:
                text = problem["msg"].removeprefix("Value error, ")
            if text not in problems:
                problems.append(text)
        takes = ", ".join(f"{o.name}={o.default!r}" for o in self.describe_options())
        return f"{' '.join(problems)} {self.name} takes: {takes}."


_MODELS: Registry[ModelSpec] = Registry("model", "name")

Network = TypeVar("Network", bound="type[GraphNetwork]")


def register_model(
    name: str, *, options: type[ModelOptions] = ModelOptions, title: str = "", **about: Any
) -> Callable[[Network], Network]:
    r"""Decorator: makes a subclass of `GraphNetwork` known as `name`.

    The class is called as `network(in_channels, hidden_channels, out_channels, num_layers,
    level=..., **options)`. A subclass of [`Model`][adgn.nn.Model] checks its options itself.

    Args:
        name: The name for `build_model`.
        options: The options, a subclass of `ModelOptions` where there are more than all have.
        title: The name people know it by; by default `name`.
        **about: Further attributes of a [`ModelSpec`][adgn.nn.ModelSpec], for the documentation.

    Example:
        Means of neighbours, again and again, without weights:

        >>> from adgn.nn import Model, build_model, register_model, unregister_model
        >>> from adgn.nn.models.diffusion import Diffusion
        >>> class Powers(Diffusion):
        ...     def steps(self, x, operator):
        ...         for _ in range(self.num_layers):
        ...             x = operator @ x
        ...             yield x
        >>> @register_model("mean-powers")
        ... class MeanPowers(Model):
        ...     @staticmethod
        ...     def build_propagation(channels, num_layers, options):
        ...         return Powers(num_layers, "mean", act=None)
        >>> build_model("mean-powers", 3, 16, 2, num_layers=4).propagation
        Powers(num_layers=4, normalization='mean')
        >>> unregister_model("mean-powers")
    """

    def register(network: Network) -> Network:
        spec = ModelSpec(name, network, options, title or name, **about)
        _MODELS.add(name, spec)
        if "spec" not in vars(network):  # a class that has two names goes by the first
            network.spec = spec
        return network

    return register


def unregister_model(name: str) -> None:
    """Forgets a model, so that its name is free: for trials and for cells that are run again.

    Example:
        [`register_model`][adgn.nn.register_model] has one that comes and goes.

        >>> unregister_model("my-method")
        Traceback (most recent call last):
        ValueError: name='my-method' is not known. ...
    """
    spec = _MODELS.find(name)
    _MODELS.remove(name)
    if vars(spec.network).get("spec") is spec:
        del spec.network.spec
        for other in (_MODELS[left] for left in _MODELS):
            if other.network is spec.network:  # the class had two names
                spec.network.spec = other
                break


def available_models() -> list[str]:
    """The names that `build_model` takes, sorted.

    Example:
        >>> available_models()[:4]
        ['adgn', 'appnp', 'cgnn', 'cheb']
    """
    return sorted(_MODELS)


def model_spec(name: str) -> ModelSpec:
    """What is known about the model of this name.

    Example:
        >>> model_spec("gcnii").title
        'GCNII'
    """
    return _MODELS.find(name)


def build_model(
    name: str,
    in_channels: int | Sequence[int],
    hidden_channels: int,
    out_channels: int,
    num_layers: int,
    *,
    level: "Level" = "node",
    **options: Any,
) -> "GraphNetwork":
    """A model by name.

    Args:
        name: One of `available_models()`.
        in_channels: Features per node; with `encoder="embedding"` how many values each has.
        hidden_channels: The size of a node's state.
        out_channels: Outputs per node or graph.
        num_layers: How many layers (steps, for a model that is iterated).
        level: `"node"`: one output per node; `"graph"`: one per graph.
        **options: The model's options, `model_spec(name).options`; their defaults are the
            settings of the paper's experiments.

    Returns:
        A `GraphNetwork`. Its `configuration` holds the arguments, so that
        `build_model(**model.configuration)` makes another one like it.

    Example:
        >>> model = build_model("gcn", 3, 16, 2, num_layers=4)
        >>> model.parameter_counts()["propagation"]  # four layers of 16 × 16 weights, 16 biases
        1088
        >>> model = build_model("gcn", [5, 3], 16, 2, num_layers=4, encoder="embedding")
        >>> type(model.encoder).__name__
        'IntegerEmbedding'
        >>> build_model("gcn", 3, 16, 2, num_layers=4, alpha=0.1)
        Traceback (most recent call last):
        ValueError: gcn has no option 'alpha'. gcn takes: act='tanh', ...
    """
    sizes = {"in_channels": in_channels, "hidden_channels": hidden_channels}
    sizes |= {"out_channels": out_channels, "num_layers": num_layers}
    model = model_spec(name).network(*sizes.values(), level=level, **options)  # type: ignore[arg-type]
    model.configuration = {"name": name, **sizes, "level": level, **options}
    return model


def unused_edge_features(model: str) -> ValueError:
    """The error for edge features given to a model that reads none."""
    can = [name for name, spec in _MODELS.items() if spec.edge_features]
    return ValueError(
        f"edge_attr was given, but this {model} reads no edge features; models that can, built "
        f"with edge_dim=<features per edge>: {', '.join(sorted(can))} (adgn with phi='gine' or "
        "phi='gat')"
    )
