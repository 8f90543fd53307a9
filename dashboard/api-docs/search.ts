// Hides the routes of the page that do not have all words of the search in their name, path, parameters or texts.

const routes = [...document.querySelectorAll('article')].map((article) => ({
  article,
  text: [article, ...article.querySelectorAll(':scope > :is(h3, p), :scope > ul > li > code')]
    .map((part) => (part === article ? article.id : part.textContent))
    .join(' ')
    .toLowerCase(),
}));

function show(search: string): void {
  const words = search.toLowerCase().split(/\s+/);
  for (const { article, text } of routes) {
    article.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll<HTMLElement>('main > section:has(article)')) {
    section.hidden = section.querySelector('article:not([hidden])') === null;
    const link = document.querySelector<HTMLElement>(`nav a[href="#${section.id}"]`);
    if (link !== null) link.hidden = section.hidden;
  }
  const all = document.querySelector<HTMLElement>('form a');
  if (all !== null) all.hidden = search === '';
  const output = document.querySelector('output');
  const found = routes.filter(({ article }) => !article.hidden).length;
  if (output !== null) output.value = search === '' ? '' : `${found} found`;
}

const input = document.querySelector<HTMLInputElement>('input[name=q]');
if (input !== null) {
  input.value = new URLSearchParams(location.search).get('q') ?? '';
  input.addEventListener('input', () => show(input.value.trim()));
  show(input.value.trim());
}
