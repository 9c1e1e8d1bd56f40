"""What the fingerprint of a cell is made from: what is computed, whichever version computes it."""

from dataclasses import asdict
from typing import Any

from pydantic.fields import FieldInfo

from adgn.experiments.budgets import Search
from adgn.nn import model_spec
from adgn.training import TrainConfig

# The settings there were when the first cells were measured. One that was added later counts where
# it is not at its default: so cells of before are what they were. The lists stay as they are.
_FIRST_SETTINGS = {
    "task": "name data_seed min_nodes train val test edge_noise splits split largest_component "
    "features radius permutations",
    "model": "name hidden_channels num_layers encoder readout dropout act norm residual improved "
    "heads concat negative_slope attention_dropout edge_dim aggr root_weight normalize mlp "
    "train_eps alpha theta shared_weights epsilon diffusion adjoint phi weight_sharing gamma bias "
    "train_recurrent memory phi_kwargs shared_gru",
    "optimizer": "name lr weight_decay momentum",
    "schedule": "name factor patience threshold every min_lr",
    "stopping": "split monitor patience ties target",
    "loop": "max_epochs batch_size passes_per_epoch evaluate_every accumulate clip_norm",
}
# Settings that belonged to one model then: for all others they are later ones.
_FIRST_OF_ONE_MODEL = {"train_recurrent": "adgn"}
_FIRST_SEARCH = ("space", "trials", "seeds", "splits", "max_epochs")


def described_settings(config: TrainConfig) -> dict[str, Any]:
    """The settings that scores depend on: not where to compute or to find data."""
    described: dict[str, Any] = {"seed": config.seed}
    plain = config.model_dump(mode="json")
    for section, first in _FIRST_SETTINGS.items():
        fields: dict[str, FieldInfo] = dict(type(getattr(config, section)).model_fields)
        if section == "model":
            fields |= model_spec(config.model.name).options.model_fields
        described[section] = {
            key: value
            for key, value in plain[section].items()
            if (
                key in first.split()
                and _FIRST_OF_ONE_MODEL.get(key, config.model.name) == config.model.name
            )
            or (key != "root" and value != _default(fields.get(key)))
        }
    return described


def _default(field: FieldInfo | None) -> Any:
    return ... if field is None else field.get_default(call_default_factory=True, validated_data={})


def described_search(search: Search) -> dict[str, Any]:
    """How settings are found; what was added to searches later, where it is not at its default."""
    usual = asdict(Search())
    return {
        key: value
        for key, value in asdict(search).items()
        if key in _FIRST_SEARCH or value != usual[key]
    }
