"""Imported by workers before they begin, see `test_processes`."""
