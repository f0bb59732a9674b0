"""A laboratory for the theory of in-context learning.

Import the module you need, for example ``from lsa_lab.models import linear_attention``. Nothing is
configured on import: precision, devices and caches are the business of whoever starts the process.
"""

__version__ = "1.0.0.dev0"
