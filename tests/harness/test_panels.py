"""A panel is a file of its own, cut out of the figure; so is the figure with its caption."""

import matplotlib.image
import pytest

from lsa_lab.harness.draw import footer, pictures, style
from lsa_lab.harness.refusal import RefusalError


def test_a_panel_is_cut_out_and_takes_its_labels_along(tmp_path):
    with style.context():
        picture, axes = style.figure(6, 5, (2, 2))
        axes[3].set(xlabel="steps", ylabel="risk")
        for ax in axes:
            ax.plot([1, 2], [1, 2], label="theory")
        picture.legend(loc="outside lower center")
        picture.colorbar(axes[0].pcolormesh([[1.0, 2.0]]), ax=axes[0])
        assert list(footer.panels_of(picture)) == ["a", "b", "c", "d"]
        paths = pictures.save_panel([picture], "d", tmp_path)
    assert [path.name for path in paths] == ["panel_d.pdf", "panel_d.svg", "panel_d.png"]
    text = paths[1].read_text("utf-8")
    assert [f"<!-- {word} -->" in text for word in ("steps", "risk", "d", "a", "theory")] == [
        *[True] * 3,
        *[False] * 2,
    ]
    height, width, _ = matplotlib.image.imread(paths[2]).shape
    assert 2 * 200 < width < 3.2 * 200
    assert 1.5 * 200 < height < 2.7 * 200


def test_an_appendix_goes_on_with_the_letters_and_another_letter_is_refused(tmp_path):
    with style.context():
        both = [style.figure(4, 2, (1, 2))[0], style.figure(4, 2, (1, 2), first="c")[0]]
        with pytest.raises(RefusalError, match="no panel 'z': the figure has a, b, c, d"):
            pictures.save_panel(both, "z", tmp_path)
        pictures.save_panel(both, "d", tmp_path)


def test_draw_panel_writes_three_files_beside_the_figure(toy, program, capsys):
    program("run", "toy")
    folder = toy / "figures" / "toy"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    capsys.readouterr()
    assert program("draw", "toy", "--panel", "a") == 0
    names = [f"panel_a.{kind}" for kind in ("pdf", "svg", "png")]
    assert capsys.readouterr().out.split() == [f"figures/toy/{name}" for name in names]
    once = {name: (folder / name).read_bytes() for name in names}
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert program("draw", "toy", "--panel", "a", "--tier", "laptop") == 0
    assert {name: (folder / name).read_bytes() for name in names} == once
    assert program("draw", "toy", "--panel", "z") == 2
    assert "the figure has a" in capsys.readouterr().err
    assert program("draw", "toy", "--tier", "paper") == 2
    assert "no result of toy at the paper tier" in capsys.readouterr().err


def test_draw_with_caption_writes_a_taller_picture_beside_the_figure(toy, program, capsys):
    program("run", "toy")
    figure = (toy / "figures" / "toy" / "figure.png").read_bytes()
    capsys.readouterr()
    assert program("draw", "toy", "--with-caption") == 0
    assert capsys.readouterr().out.split() == ["figures/toy/captioned.pdf"]
    folder = toy / "figures" / "toy"
    assert (folder / "figure.png").read_bytes() == figure
    plain, captioned = (
        matplotlib.image.imread(folder / f"{name}.png") for name in ("figure", "captioned")
    )
    assert captioned.shape[0] > plain.shape[0]
    assert captioned.shape[1] == plain.shape[1]
