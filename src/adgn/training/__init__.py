"""The loop, early stopping, metrics, checkpoints: from a configuration to a finished run."""

from typing import TYPE_CHECKING

from adgn._util.registry import lazy_exports

if TYPE_CHECKING:  # imported on first use: tables of names need no torch
    from adgn.training.api import resume, train
    from adgn.training.batches import (
        BatchSource,
        FullGraph,
        LabelledBatch,
        LoaderBatches,
        PackedBatches,
        labelled_batch,
    )
    from adgn.training.block_batches import BlockBatches
    from adgn.training.config import (
        TrainConfig,
        parse_setting,
        read_config,
        resolve_config,
        to_toml,
    )
    from adgn.training.errors import (
        ConfigError,
        DamagedRunError,
        DivergedError,
        Interrupted,
        RunError,
        TrainingError,
    )
    from adgn.training.metrics import (
        ClassificationMetrics,
        LearnedNothingWarning,
        RegressionMetrics,
        macro_f1,
    )
    from adgn.training.objective import OBJECTIVES, EarlyStopping, Objective
    from adgn.training.predictions import predict
    from adgn.training.preparation import Prepared, prepare
    from adgn.training.progress import Callback
    from adgn.training.run import RunDirectory, RunResult
    from adgn.training.saved_runs import evaluate, open_run
    from adgn.training.tasks import (
        TASKS,
        ExtraScore,
        PublishedValue,
        TaskData,
        TaskEntry,
        register_task,
        shared_data,
        unregister_task,
    )
    from adgn.training.trainer import Trainer
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__all__ = [
    "OBJECTIVES", "TASKS", "BatchSource", "BlockBatches", "Callback", "ClassificationMetrics",
    "ConfigError", "DamagedRunError", "DivergedError", "EarlyStopping", "ExtraScore",
    "FullGraph", "Interrupted", "LabelledBatch", "LearnedNothingWarning", "LoaderBatches",
    "Objective", "PackedBatches", "Prepared", "PublishedValue", "RegressionMetrics",
    "RunDirectory", "RunError", "RunResult", "TaskData", "TaskEntry", "TrainConfig", "Trainer",
    "TrainingError", "evaluate", "labelled_batch", "macro_f1", "open_run", "parse_setting",
    "predict", "prepare", "read_config", "register_task", "resolve_config", "resume",
    "shared_data", "to_toml", "train", "unregister_task",
]  # fmt: skip
