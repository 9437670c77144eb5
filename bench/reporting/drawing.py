"""What all pictures have in common: size, colours of light and dark pages, and how numbers are written."""

WIDTH = 5.4    # inches; a phone shows it at about this size

# Colours that people with any kind of colour blindness tell apart (Okabe and Ito), darker on light pages where text has them.
THEMES = {
    "": {"text": "#1f2328", "page": "#ffffff", "grid": "#d1d9e0", "floor": "#6e7781",
         "series": ["#0060a0", "#b85c00", "#00785c", "#a0407c", "#6b5b00", "#4a4a4a"]},
    "-dark": {"text": "#e6edf3", "page": "#0d1117", "grid": "#3d444d", "floor": "#9198a1",
              "series": ["#56b4e9", "#f0a030", "#2fc39a", "#e08abf", "#d8c840", "#c0c0c0"]},
}


def settings(theme):
    text = theme["text"]
    return {
        "svg.fonttype": "none", "svg.hashsalt": "gputext",
        "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"], "font.size": 11,
        "text.color": text, "axes.edgecolor": theme["floor"], "axes.labelcolor": text, "xtick.color": text, "ytick.color": text,
        "axes.labelsize": 11, "xtick.labelsize": 10.5, "ytick.labelsize": 10.5,
    }


def short(value):
    """A number of three digits, and of thousands and millions their first letters: 1.81, 250, 10k, 1M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.3g}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def duration(seconds):
    if seconds == 0:
        return "0"
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if seconds >= size * 0.9995 or unit == "ns":
            value = seconds / size
            return f"{value:,.0f} {unit}" if value >= 999.5 else f"{value:.3g} {unit}"


def spread(places, least, most=float("inf")):
    """Places of labels, moved apart so that each is `least` from the next, in their order, and none is beyond `most`."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for _ in range(200):
        for lower, upper in zip(order, order[1:]):
            lack = least - (moved[upper] - moved[lower])
            if lack > 1e-9:
                moved[upper] += lack / 2
                moved[lower] -= lack / 2
    for place in reversed(order):
        moved[place] = min(moved[place], most)
        most = moved[place] - least
    return moved
