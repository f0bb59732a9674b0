"""A panel is a file of its own: what it shares with others comes along, the rest is gone."""

import re

import matplotlib.image
import numpy as np
import pytest

from lsa_lab.harness.draw import panels, style
from lsa_lab.harness.refusal import RefusalError


def picture_of_four():
    """Two panels of one legend and one set of rows, which only a names; two of one colorbar."""
    picture, axes = style.figure(6, 5, (2, 2))
    for ax, name in zip(axes[:2], "pq", strict=True):
        style.mean_points(ax, [1, 2], np.arange(6.0).reshape(3, 2), "runs", color="C1", fmt="o")
        ax.set(title=name, ylim=(0, 4))
    axes[0].set_yticks([1, 2], ["first row", "second row"])
    axes[1].set_yticks([1, 2], ["", ""])
    axes[0].legend()
    for ax in axes[2:]:
        image = ax.pcolormesh(np.arange(4.0).reshape(2, 2), vmin=0, vmax=7)
    picture.colorbar(image, ax=axes[2:], label="share")
    return picture, axes


def texts(picture):
    return {text.get_text() for text in picture.findobj(match=lambda a: hasattr(a, "get_text"))}


def test_a_panel_keeps_what_it_shares_with_others():
    with style.context():
        picture, axes = picture_of_four()
        assert list(panels.panels_of(picture)) == ["a", "b", "c", "d"]
        panels.keep_only(picture, "b", 3.25)
        picture.draw_without_rendering()
        assert picture.axes == [axes[1]]
        assert {"q", "runs", "first row", "second row"} <= texts(picture)
        assert not {"p", "a", "b", "share"} & texts(picture)
        assert picture.get_size_inches()[0] == 3.25

        picture, axes = picture_of_four()
        panels.keep_only(picture, "c", 2.0)
        assert len(picture.axes) == 2
        assert "share" in texts(picture)
        assert "runs" not in texts(picture)


@pytest.mark.parametrize(("top", "label"), [(4, "risk"), (5, "")])
def test_a_label_of_the_row_or_column_comes_along_if_limits_are_the_same(top, label):
    with style.context():
        picture, axes = style.figure(6, 5, (2, 2))
        for ax in axes:
            ax.set(xlim=(0, 1), ylim=(0, 4))
        axes[2].set(ylabel="risk", xlabel="left")
        axes[3].set(ylim=(0, top), xlabel="steps")
        panels.keep_only(picture, "d", 3.0)
        assert axes[3].get_ylabel() == label
        assert axes[3].get_xlabel() == "steps"
        picture, axes = style.figure(6, 5, (2, 2))
        axes[3].set(xlabel="steps", ylabel="below")
        panels.keep_only(picture, "b", 3.0)
        assert (axes[1].get_xlabel(), axes[1].get_ylabel()) == ("steps", "")


def test_nothing_of_a_panel_is_cut_off():
    with style.context():
        picture, axes = picture_of_four()
        panels.keep_only(picture, "a", 3.25)
        picture.draw_without_rendering()
        box, page = axes[0].get_tightbbox(), picture.bbox
        assert box.x0 >= 0 and box.y0 >= 0  # noqa: PT018
        assert box.x1 <= page.x1 and box.y1 <= page.y1  # noqa: PT018


def test_a_legend_of_other_series_stays_behind():
    with style.context():
        picture, (left, right) = style.figure(6, 3, (1, 2))
        left.plot([1, 2], [1, 2], color="C0", label="theory")
        left.legend()
        right.plot([1, 2], [2, 1], color="C3")
        panels.keep_only(picture, "b", 3.0)
        assert right.get_legend() is None


def test_a_legend_of_the_whole_figure_stays_where_its_series_are():
    for letter, labels in (("a", {"theory"}), ("b", set())):
        with style.context():
            picture, (left, right) = style.figure(6, 3, (1, 2))
            left.plot([1, 2], [1, 2], label="theory")
            right.plot([1, 2], [2, 1])
            picture.legend(*left.get_legend_handles_labels(), loc="outside lower center")
            panels.keep_only(picture, letter, 3.0)
            assert {t.get_text() for own in picture.legends for t in own.get_texts()} == labels
            assert left.get_legend() is right.get_legend() is None


def test_rows_of_text_keep_their_room_in_a_narrow_panel():
    with style.context():
        picture, _ = style.figure(6.75, 2.5)
        panels.keep_only(picture, "a", 3.25)
        assert picture.get_size_inches()[1] > 2.3, "its proportions alone would give it 1.2"


def test_an_appendix_goes_on_with_the_letters_and_another_letter_is_refused(tmp_path):
    with style.context():
        pictures = [style.figure(4, 2, (1, 2))[0], style.figure(4, 2, (1, 2), first="c")[0]]
        with pytest.raises(RefusalError, match="no panel 'z': the figure has a, b, c, d"):
            panels.save(pictures, "z", 3.0, tmp_path)
        paths = panels.save(pictures, "d", 3.0, tmp_path)
    assert [path.name for path in paths] == ["panel_d.pdf", "panel_d.svg", "panel_d.png"]


def test_draw_panel_writes_three_files_beside_the_figure(toy, program, capsys):
    program("run", "toy")
    folder = toy / "figures" / "toy"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    capsys.readouterr()
    assert program("draw", "toy", "--panel", "a", "--width", "4") == 0
    names = [f"panel_a.{kind}" for kind in ("pdf", "svg", "png")]
    assert capsys.readouterr().out.split() == [f"figures/toy/{name}" for name in names]
    once = {name: (folder / name).read_bytes() for name in names}
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert matplotlib.image.imread(folder / "panel_a.png").shape[1] == 4 * 200
    assert re.search(rb'<svg[^>]*width="288pt"', once["panel_a.svg"])
    assert program("draw", "toy", "--panel", "a", "--width", "4", "--tier", "laptop") == 0
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
