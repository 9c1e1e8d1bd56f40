"""The optional native kernels: C++ on plain arrays, free of torch's binary interface."""
