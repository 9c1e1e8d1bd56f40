"""What can go wrong between ranks."""


class RankError(RuntimeError):
    """Ranks cannot find each other, differ in what they would do, or one of them was lost."""


class LostRankError(RankError):
    """Another rank is not there, as this one sees it."""
