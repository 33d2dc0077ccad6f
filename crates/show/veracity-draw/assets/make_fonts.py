"""Make the fonts of this folder from those of the Inter project, version 4.1.

Wants fonttools and brotli, and a folder with `Inter-Regular.woff2` and `Inter-SemiBold.woff2`:

    python make_fonts.py FOLDER

Kept are the letters of names, shapes and units: Latin, Greek, Cyrillic, and some signs. Kerning and
ligatures are left out on purpose: then the width of a text is the sum of its letters in every
renderer, and the layout measures exactly what is drawn.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import subset

LETTERS = "U+0020-007E,U+00A0-017F,U+0391-03A1,U+03A3-03A9,U+03B1-03C9,U+0410-044F"
SIGNS = "U+2013,U+2014,U+2018-201A,U+201C-201E,U+2022,U+2026,U+2032,U+2033,U+2070-2079,U+2080-2089"
MORE = "U+2190-2193,U+2202,U+2206,U+2211,U+221A,U+221E,U+2248,U+2260,U+2264,U+2265"


def main(folder: Path) -> None:
    """Write both weights, for the layout and for pages."""
    for weight in ("Regular", "SemiBold"):
        for ending, flavor in (("ttf", None), ("woff2", "woff2")):
            options = subset.Options(layout_features=[], hinting=False, flavor=flavor)
            options.name_IDs = ["*"]  # family and weight apart, and the licence
            options.drop_tables += ["STAT", "GDEF", "GPOS", "GSUB", "DSIG", "BASE"]
            font = subset.load_font(str(folder / f"Inter-{weight}.woff2"), options)
            worker = subset.Subsetter(options)
            worker.populate(unicodes=subset.parse_unicodes(f"{LETTERS},{SIGNS},{MORE}"))
            worker.subset(font)
            # The same input gives the same bytes.
            font.recalcTimestamp = False
            name = Path(__file__).with_name(f"Inter-{weight}.{ending}")
            subset.save_font(font, str(name), options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
