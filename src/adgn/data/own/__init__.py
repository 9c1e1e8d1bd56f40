"""A user's own graphs: tables and graph objects in, features and targets out."""
