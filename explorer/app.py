"""The page of the explorer: sliders, the figure, a sentence. `make explore` serves it."""

import marimo

app = marimo.App(width="full", app_title="lsa_lab: explorer")

with app.setup:
    import base64
    import html
    import time
    import urllib.parse

    import marimo as mo

    from lsa_lab.lab import settings

    settings.configure()  # before jax is imported

    from explorer.picture import Picture, sentence
    from explorer.views import (
        BATCH,
        LAYERS,
        MATRICES,
        PRESETS,
        SHARPNESS,
        SHOTS,
        START,
        WEIGHTS,
        WIDTH,
        D,
        address,
        addressed,
        controls,
        views,
    )
    from lsa_lab.analyses.clipping import every_rate

    BESIDE = (
        f"Risk: mean squared error of {BATCH} prompts; flow: one of them. More in "
        "notebooks/does_depth_amplify.py, notebooks/train_and_dissect.py and docs/theory/README.md."
    )
    STYLE = """<style>
    .wide { overflow-x: auto; }
    #panels { width: 100%; min-width: 42rem; max-width: 60rem; background: #fff; }
    #presets a { display: inline-block; margin: 0 0.9rem 0.2rem 0; text-decoration: underline; }
    @media (prefers-color-scheme: dark) { #panels { filter: invert(0.9) hue-rotate(180deg); } }
    </style>"""


@app.cell
def _():
    place = addressed(mo.query_params().to_dict())

    def slider(name, label, **grid):
        look = {"label": label, "show_value": True, "full_width": True}
        return mo.ui.slider(value=place[name], **look, **grid)

    def choice(name, names):
        places = {text: number for number, text in enumerate(names)}
        return mo.ui.dropdown(places, names[place[name]], label=name)

    heads = [mo.ui.checkbox(bool(g), label=str(h)) for h, g in enumerate(place["gates"], 1)]
    knobs = mo.ui.dictionary(
        {
            "shots": slider("shots", "demonstrations n", steps=SHOTS),
            "noise_std": slider(
                "noise_std", "noise of labels (std)", start=0.05, stop=1, step=0.05
            ),
            "sparsity": slider("sparsity", f"non-zeros of w, of {D}", start=1, stop=D, step=1),
            "seed": slider("seed", "seed", start=0, stop=20, step=1),
            "weights": choice("weights", WEIGHTS),
            "scale": slider("scale", "step of descent, or scale", start=0.1, stop=2, step=0.05),
            "depth": slider("depth", "depth in layers", start=1, stop=LAYERS, step=1),
            "softmax": slider("softmax", "sharpness ε", steps=SHARPNESS),
            "gates": mo.ui.array(heads),
            "matrix": choice("matrix", [name.upper() for name in MATRICES]),
            "layer": slider("layer", "layer clipped", start=1, stop=LAYERS, step=1),
            "rate": slider("rate", "share of singular values cut", steps=every_rate(WIDTH)),
            "step": slider("step", "step β of the delta rule", start=0.1, stop=1.9, step=0.1),
        }
    )
    return (knobs,)


@app.cell
def _(knobs):
    groups = {
        "Prompt": ("shots", "noise_std", "sparsity", "seed"),
        "Model": ("weights", "scale", "depth", "softmax"),
        "Clipping": ("matrix", "layer", "rate"),
        "Learning curves": ("step",),
    }
    sides = {name: [knobs[knob] for knob in group] for name, group in groups.items()}
    sides["Model"] += [
        mo.Html("<small>ε = 0.01: nearly linear attention, ε = 1: softmax</small>"),
        mo.hstack(["heads", *knobs["gates"].elements], justify="start"),
    ]
    mo.sidebar(
        [mo.vstack([mo.Html(f"<b>{name}</b>"), *side], gap=0.3) for name, side in sides.items()],
        width="310px",
    )
    return


@app.cell
def _():
    with mo.status.spinner(
        "Compiling", "one program for every position, about ten seconds on a free machine"
    ):
        picture = Picture()
        picture.svg(controls(START), views(controls(START)))
    return (picture,)


@app.cell
def _(knobs, picture):
    began = time.perf_counter()
    values = knobs.value
    moved = controls(values)
    arrays = views(moved)
    svg = picture.svg(moved, arrays)
    words = sentence(moved, arrays)
    elapsed = time.perf_counter() - began
    query = mo.query_params()
    for name in START:
        text = address(values).get(name)
        query.set(name, text) if text else query.remove(name)
    links = " ".join(
        f'<a href="?{urllib.parse.urlencode(address(START | changed))}">{html.escape(name)}</a>'
        for name, changed in PRESETS.items()
    )
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    figure = f'<img id="panels" src="{source}" alt="{html.escape(words)}">'
    mo.vstack(
        [
            mo.Html(STYLE),
            mo.md("# Which algorithm does a model run in its prompt?"),
            mo.Html(f'<p id="presets">Try: {links}</p>'),
            mo.md(f"**What you see.** {words}"),
            mo.Html(f'<div class="wide">{figure}</div>'),
            mo.md(f"<small>Redrawn in {elapsed:.2f} s. {BESIDE}</small>"),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
