"""What `noisy_descent` judges, and by which criteria; the numbers are those of its Config."""

from lsa_lab.claims import Statement

_ASSUMPTION = "A2 (2406.03768), Assumption 1, our reading, in our setting"
_REMARK = "A2 (2406.03768), Remark 3, in our setting"
_NOISE = "A2 (2406.03768), appendix C.4, in our setting"
_OF_A_TASK = "over prompts of one task; the mean over layers and tasks"
_RISK = "the mean over prompts of |w_L - w|², each at most |w|², the error of predicting 0"


def statements(config) -> tuple[Statement, ...]:
    return (*_about_the_shape(config), *_about_the_test(config), *_about_the_size(config))


def _about_the_shape(config):
    excess = f"excess kurtosis of what an update adds to the answer, {_OF_A_TASK},"
    passed = (
        f"the share of layers and tasks whose {config.prompts} updates a test of normality at 5 % "
        "lets pass"
    )
    jarque = (
        "Jarque and Bera's test, of what an update adds to the answer; critical value simulated"
    )
    return (
        Statement(
            "gaussian_linear",
            _ASSUMPTION,
            "The noise of a trained linear stack's updates is Gaussian",
            excess,
            margin=config.same_shape,
            note="at the first layer between 12/(n e) and 12/n, a theorem",
        ),
        Statement(
            "gaussian_whole",
            _ASSUMPTION,
            "The same, of the whole update in random directions",
            f"excess kurtosis of R·G, R of independent N(0, 1), {_OF_A_TASK},",
            margin=config.same_shape,
        ),
        Statement(
            "gaussian_softmax",
            _ASSUMPTION,
            "The noise of a trained softmax transformer's updates is Gaussian",
            excess,
            margin=config.same_shape,
            note="at one query; softmax has no update that is common to all",
        ),
        Statement(
            "passes_linear",
            _ASSUMPTION,
            "A test of normality lets the noise of a trained linear stack pass",
            passed,
            at_least=config.passes,
            note=jarque,
        ),
        Statement(
            "passes_softmax",
            _ASSUMPTION,
            "A test of normality lets the noise of a trained softmax transformer pass",
            passed,
            at_least=config.passes,
            note=jarque,
        ),
        Statement(
            "training_helps",
            "derived here",
            "Training makes the noise of a linear stack more Gaussian",
            f"excess kurtosis of what an update adds to the answer, {_OF_A_TASK}, after training "
            "less before",
            at_most=0.0,
        ),
    )


def _about_the_test(config):
    def alike(name, source, says, rival, base="the model's", note=""):
        return Statement(
            name,
            source,
            says,
            f"{rival} risk over {base}: {_RISK},",
            "ratio",
            margin=config.alike,
            note=note,
        )

    return (
        alike(
            "tests_alike",
            _REMARK,
            "Implicit descent with Gaussian noise, a draw for each step (Eq. 4), tests like the "
            "model",
            "Eq. 4's",
            note="noise of the covariance that fresh demonstrations give G_t, given W_{t-1}",
        ),
        Statement(
            "typically_alike",
            _REMARK,
            "The same, on the typical prompt",
            "Eq. 4's |w_L - w|² over the model's, the median over prompts of each,",
            "ratio",
            margin=config.alike,
        ),
        alike(
            "one_draw_alike",
            "A2 (2406.03768), Remark 3, our reading, in our setting",
            "Implicit descent with Gaussian noise that is the same at every step tests like the "
            "model",
            "that descent's",
            note="the second reading: one prompt's demonstrations are the same in all layers",
        ),
        alike(
            "sgd_alike",
            _REMARK,
            "Descent with Gaussian noise (Eq. 4) tests like stochastic gradient descent",
            "Eq. 4's",
            "that of descent with fresh demonstrations for each step",
            "what the works that Remark 3 cites say",
        ),
        alike(
            "learns_like_sgd",
            _REMARK,
            "The model tests like stochastic gradient descent",
            "with fresh demonstrations for each layer, the",
            note="both are descent with the weights of the model",
        ),
        Statement(
            "shape_matters",
            "derived here",
            "Noise of the same size and another shape tests worse than Eq. 4's",
            f"its risk, the noise the same in all entries of W, over Eq. 4's: {_RISK},",
            "ratio",
            at_least=1 + config.alike,
        ),
        Statement(
            "size_matters",
            "derived here",
            "Half the noise of Eq. 4 tests better",
            f"its risk over Eq. 4's: {_RISK},",
            "ratio",
            at_most=1 - config.alike,
        ),
    )


def _about_the_size(config):
    share = "E|G - E G|² / E|G|² over prompts of one task, the mean over layers and tasks,"
    return (
        Statement(
            "less_with_shots",
            _NOISE,
            "The more demonstrations, the less noise is in the updates",
            f"{share} at 2n over that at n",
            "ratio",
            at_most=0.75,
            note="at the first layer it halves but for its own weight in the size: a theorem",
        ),
        Statement(
            "less_with_training",
            _NOISE,
            "Training takes noise out of the updates",
            f"{share} after training less before",
            at_most=0.0,
            note="16 runs of the laptop tier leave it open, 57 of the paper tier decide",
        ),
    )
