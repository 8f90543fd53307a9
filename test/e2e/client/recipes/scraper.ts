import type { Headgate } from 'headgate/client';

export async function readPages(gate: Headgate, urls: readonly string[]) {
  const limit = gate.limit({ group: 'crawl', lane: 'low' });
  const pages = await limit.map(urls, (url) => fetch(url));
  return Promise.all(pages.map((page) => page.text()));
}
