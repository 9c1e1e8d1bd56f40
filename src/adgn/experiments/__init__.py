"""Experiments: which task × which model × which protocol."""
