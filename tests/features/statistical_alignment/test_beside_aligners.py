"""Links equal the output of other projects' programs: fast_align, atools, symal (from clones) and eflomal."""

import random
import subprocess

import pytest

from isogloss.aligners.setting import AlignSetting
from isogloss.data.examples import Translation
from isogloss.features.statistical_alignment.eflomal import Eflomal
from isogloss.features.statistical_alignment.fast_align import FastAlign
from isogloss.features.statistical_alignment.symmetrizing import symmetrize

pytestmark = pytest.mark.nightly

FAST_ALIGN = "clab+fast_align"


def output_of(program, *options, text=None):
    """Return the links that a program prints for each sentence."""
    output = subprocess.run(
        [str(program), *(str(option) for option in options)],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [parse_links(line) for line in output.splitlines()]


def parse_links(line):
    return {tuple(int(part) for part in link.split("-")) for link in line.split()}


def write_links(path, sentences):
    lines = (
        " ".join(f"{first_link}-{second}" for first_link, second in sorted(links)) for links in sentences
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def random_directions(draw, count):
    """Return links of both directions: each word has one link at most in one of them."""
    forward = []
    backward = []
    sizes = []
    for _ in range(count):
        first_position = draw.randint(2, 10)
        second = draw.randint(2, 10)
        sizes.append((first_position, second))
        forward.append(
            {
                (near(draw, word, first_position, second), word)
                for word in range(second)
                if draw.random() < 0.9
            }
            | {(0, 0)}
        )
        backward.append(
            {
                (word, near(draw, word, second, first_position))
                for word in range(first_position)
                if draw.random() < 0.9
            }
            | {(0, 0)}
        )
    forward = [only_one(links, 1) for links in forward]
    backward = [only_one(links, 0) for links in backward]
    return sizes, forward, backward


def near(draw, word, size, other_size):
    """Return a place near the diagonal."""
    return min(size - 1, max(0, word * size // other_size + draw.choice((-1, 0, 0, 1))))


def only_one(links, side):
    """Return one link of each word of a side."""
    return set({link[side]: link for link in sorted(links)}.values())


@pytest.mark.parametrize("method", ["intersection", "union"])
def test_intersection_and_union_are_those_of_atools(program, tmp_path, method):
    atools = program(FAST_ALIGN, "src/atools.cc", "src/alignment_io.cc")
    _, forward, backward = random_directions(random.Random(method), 300)
    files = write_links(tmp_path / "forward", forward), write_links(tmp_path / "backward", backward)
    name = {"intersection": "intersect"}.get(method, method)
    expected = output_of(atools, "-i", files[0], "-j", files[1], "-c", name)
    symmetric_links = [set(symmetrize(*pair, method)) for pair in zip(forward, backward, strict=True)]
    assert symmetric_links == expected


SYMAL_OPTIONS = {
    "intersection": ["-a=i"],
    "union": ["-a=u"],
    "grow-diag": ["-a=g", "-d=yes", "-f=no", "-b=no"],
    "grow-diag-final-and": ["-a=g", "-d=yes", "-f=yes", "-b=yes"],
}


SYMAL = ("moses-smt+mosesdecoder", "symal/symal.cpp", "symal/cmd.c")


@pytest.mark.parametrize("method", ["intersection", "union", "grow-diag"])
def test_links_are_those_of_moses_with_the_languages_exchanged(program, method):
    symal = program(*SYMAL)
    sizes, forward, backward = random_directions(random.Random(method), 300)
    expected = links_of_symal(symal, method, flip_sizes(sizes), flip(backward), flip(forward))
    symmetric_links = [set(symmetrize(*pair, method)) for pair in zip(forward, backward, strict=True)]
    assert symmetric_links == flip(expected)


def test_final_links_are_those_of_moses_where_the_order_of_growing_does_not_matter(program):
    """Moses adds the final links of the first direction first, but grows by words of the second language."""
    symal = program(*SYMAL)
    sizes, forward, backward = random_directions(random.Random(0), 300)
    grown_links = links_of_symal(symal, "grow-diag", sizes, forward, backward)
    expected = links_of_symal(symal, "grow-diag-final-and", sizes, forward, backward)
    equal = 0
    for folder, back, links, final_links in zip(forward, backward, grown_links, expected, strict=True):
        if set(symmetrize(folder, back, "grow-diag")) == links:
            assert set(symmetrize(folder, back, "grow-diag-final-and")) == final_links
            equal += 1
    assert equal > 200


def flip(sentences):
    return [{(second, first_link) for first_link, second in links} for links in sentences]


def flip_sizes(sizes):
    return [(second, first_size) for first_size, second in sizes]


def links_of_symal(symal, method, sizes, forward, backward):
    """Return the links that symal prints, whose source is the first language."""
    text = ""
    for (first_size, second), folder, back in zip(sizes, forward, backward, strict=True):
        first_links = {link[0]: link[1] + 1 for link in back}
        second_links = {link[1]: link[0] + 1 for link in folder}
        text += "1\n" + side_of_symal(second, second_links) + side_of_symal(first_size, first_links)
    return output_of(symal, *SYMAL_OPTIONS[method], text=text)


def side_of_symal(size, partners):
    """Return words of a side with the number of each one's partner, 0 without."""
    words = " ".join(f"w{word}" for word in range(size))
    return f"{size} {words} # {' '.join(str(partners.get(word, 0)) for word in range(size))}\n"


def made_up_pairs(count):
    """Return pairs of sentences whose second words are translations of the first, in a similar order."""
    draw = random.Random(0)
    words = [f"w{index}" for index in range(60)]
    for value in range(count):
        first_choices = draw.choices(words, k=draw.randint(2, 12))
        second = [f"{word}x" for word in first_choices if draw.random() < 0.9] or ["x"]
        if draw.random() < 0.5:
            place = draw.randrange(len(second))
            second[place:] = reversed(second[place:])
        yield Translation(id=str(value), first=" ".join(first_choices), second=" ".join(second))


def test_links_are_those_of_the_program_fast_align(program, tmp_path):
    fast_align = program(FAST_ALIGN, "src/fast_align.cc", "src/ttables.cc")
    pairs = list(made_up_pairs(400))
    path = tmp_path / "pairs"
    path.write_text("".join(f"{pair.first} ||| {pair.second}\n" for pair in pairs))
    for direction, options in (("forward", ()), ("backward", ("-r",))):
        expected = output_of(fast_align, "-i", path, "-d", "-v", *options)
        aligned_links = FastAlign(symmetrization=direction).align(AlignSetting(pairs=pairs))
        assert [set(links.links) for links in aligned_links] == expected


def test_links_are_about_those_of_eflomals_own_front_end(tmp_path):
    eflomal = pytest.importorskip("eflomal")
    pairs = list(made_up_pairs(400))
    sides = tmp_path / "first", tmp_path / "second"
    for path, texts in zip(
        sides, zip(*((pair.first, pair.second) for pair in pairs), strict=True), strict=True
    ):
        path.write_text("".join(f"{text}\n" for text in texts))
    found_path = tmp_path / "forward"
    with sides[0].open() as first_stream, sides[1].open() as second:
        eflomal.Aligner().align(first_stream, second, links_filename_fwd=str(found_path))
    expected = [parse_links(line) for line in found_path.read_text().splitlines()]
    aligned_links = Eflomal(symmetrization="forward").align(AlignSetting(pairs=pairs))
    links = [set(links.links) for links in aligned_links]
    shared = sum(len(ours & theirs) for ours, theirs in zip(links, expected, strict=True))
    assert 2 * shared > 0.8 * (sum(len(item) for item in links) + sum(len(item) for item in expected))
