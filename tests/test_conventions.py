"""What is not said has one meaning everywhere: no noise, unit weights, the minus sign."""

import importlib
import inspect
import pkgutil

ROOMS = ("theory", "models", "analyses", "selection", "estimators", "tasks")
CONVENTIONS = {
    "noise_var": 0.0,
    "noise_std": 0.0,
    "weight_std": 1.0,
    "signal_norm_sq": 1.0,
    "sign": -1.0,
    "keys": "demonstrations",
    "centred": False,
    "per_head": False,
    "reverse": False,
    "whiten": False,
    "max_swaps": 1000,
    "average": "mean",
    "rtol": 1e-10,
    "atol": 1e-10,
    # a model without the extras of a language model
    "norm": False,
    "final_norm": False,
    "biases": False,
    # pools without twins, flips, clusters or structure
    "copies": 0.0,
    "flips": 0.0,
    "separation": 0.0,
    "closeness": 1.0,
    "shares": (1.0,),
    "num_weights": 1,
    "first": 0,
}


def defaults():
    """Every public function and class of the rooms, with what each parameter is if not said."""
    for room in ROOMS:
        package = importlib.import_module(f"lsa_lab.{room}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                if callable(value) and getattr(value, "__module__", None) == info.name:
                    for parameter in inspect.signature(value).parameters.values():
                        if parameter.default not in (inspect.Parameter.empty, None):
                            yield f"{info.name}.{name}", parameter.name, parameter.default


def test_a_parameter_that_is_not_said_means_the_same_everywhere():
    rows = list(defaults())
    others = [row for row in rows if CONVENTIONS.get(row[1], row[2]) != row[2]]
    assert others == []
    assert {name for _, name, _ in rows} >= CONVENTIONS.keys()
    # Sums over demonstrations are divided by their number, and correlations are not normalised.
    assert {where for where, name, default in rows if name == "normalise" and not default} == {
        "lsa_lab.estimators.descent.preprocessed_gradient_descent",
        "lsa_lab.estimators.descent.preprocessed_step_limit",
    }
