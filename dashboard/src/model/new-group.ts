import type { EditedDocument } from './document.ts';

/** Draft of a group that takes the calls of an automatic group, such as `auto:zai/glm-5.1`. */
export function newGroupFor(like: string | null, blank: EditedDocument): EditedDocument {
  const [, upstream, row] = /^auto:([^/]+)(?:\/(.+))?$/.exec(like ?? '') ?? [];
  if (upstream === undefined) return blank;
  const models = row === undefined ? [] : [`${row}*`];
  const name = groupNameFor([upstream, row ?? []].flat().join('-'));
  const match = { ...(blank['match'] as EditedDocument), upstreams: [upstream], models };
  return { ...blank, name, match };
}

export function groupNameFor(words: string): string {
  return words
    .toLowerCase()
    .replace(/[^a-z0-9._-]/g, '-')
    .slice(0, 64);
}
