"""How results look: tables as text, HTML, Markdown, LaTeX and CSV, numbers and words."""
