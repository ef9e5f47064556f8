// Marks the texts of a search in the document, without changing it: the CSS Custom Highlight API.

/** Marks `texts` in the elements, without regard to case. A browser without the API marks nothing. */
export function highlight(elements, texts) {
  if (!globalThis.CSS?.highlights) return;
  const ranges = texts.length ? elements.flatMap((element) => rangesIn(element, texts.map((text) => text.toLowerCase()))) : [];
  if (ranges.length) CSS.highlights.set("search", new Highlight(...ranges));
  else CSS.highlights.delete("search");
}

function rangesIn(element, texts) {
  const ranges = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const content = node.data.toLowerCase();
    // Lowercase letters of some alphabets are longer.
    if (content.length !== node.data.length) continue;
    for (const text of texts) {
      for (let at = content.indexOf(text); at >= 0; at = content.indexOf(text, at + text.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + text.length);
        ranges.push(range);
      }
    }
  }
  return ranges;
}
