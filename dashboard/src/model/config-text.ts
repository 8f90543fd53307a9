import { isMap, isScalar, isSeq, LineCounter, parseDocument, stringify } from 'yaml';

/** Configuration as text. The YAML parser is as large as the rest of the page, so this module is loaded on demand. */
export { ConfigSyntaxError, parseConfigText } from '../../../src/config/parse-text.ts';

export function yamlOf(document: unknown): string {
  return stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 });
}

/** Line (from 1) of the value at an error's path, or of its closest existing parent. */
export function lineOf(text: string, path: string): number | null {
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines, logLevel: 'silent' });
  let node: unknown = contents;
  let offset: number | undefined = contents?.range?.[0];
  for (const part of partsOf(path)) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part);
      if (pair === undefined) break;
      offset = isScalar(pair.key) ? pair.key.range?.[0] : offset;
      node = pair.value;
    } else if (isSeq(node)) {
      const item: unknown = node.items[Number(part)];
      offset = isMap(item) || isScalar(item) || isSeq(item) ? item.range?.[0] : offset;
      node = item;
    } else {
      break;
    }
  }
  return offset === undefined ? null : lines.linePos(offset).line;
}

/** Splits `groups[0].limits.rpm` into `groups`, `0`, `limits`, `rpm`. */
function partsOf(path: string): string[] {
  return [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g)].map(
    ([, quoted, index, name]) => quoted ?? index ?? name ?? '',
  );
}
