import type { AuditChange } from '../contract/audit.ts';
import { fieldsBetween, type FieldDifference } from './field-paths.ts';

/** Maximum changes of one entry that are stored. The rest is counted. */
const CHANGES_MAX = 100;

/** Maximum characters of one value, and of an entry. A database row is limited to 2 MB. */
const VALUE_CHARACTERS_MAX = 4_000;
const ENTRY_CHARACTERS_MAX = 64_000;

/** Fields whose value is never stored. */
const HIDDEN_FIELDS = new Set(['hash']);
const HIDDEN = '(hidden)';

/** Field of a receiver's address. Its path often contains a credential for sending to it. */
const ADDRESS_FIELD = 'url';

/** Returns the differences between two documents by field. Entries of lists are identified by name or id. */
export function changesBetween(
  before: unknown,
  next: unknown,
): { readonly changes: readonly AuditChange[]; readonly omitted: number } {
  const all = [...fieldsBetween(before, next)];
  const changes: AuditChange[] = [];
  let characters = 0;
  for (const change of all.slice(0, CHANGES_MAX).map(shownChange)) {
    characters += JSON.stringify(change).length;
    if (characters > ENTRY_CHARACTERS_MAX) break;
    changes.push(change);
  }
  return { changes, omitted: all.length - changes.length };
}

function shownChange({ text, from, to }: FieldDifference): AuditChange {
  const field = /(\w+)$/.exec(text)?.[1] ?? '';
  return {
    path: text,
    ...(from === undefined ? {} : { from: shown(from, field) }),
    ...(to === undefined ? {} : { to: shown(to, field) }),
  };
}

/** Returns a value as it is stored: without hidden parts, and with limited length. */
export function shown(value: unknown, field: string): unknown {
  const text = JSON.stringify(value, (name, inner: unknown) =>
    typeof inner === 'string' ? shownText(inner, name === '' ? field : name) : inner,
  );
  return text.length > VALUE_CHARACTERS_MAX ? `(${text.length} characters)` : JSON.parse(text);
}

function shownText(text: string, field: string): string {
  if (HIDDEN_FIELDS.has(field)) return HIDDEN;
  return field === ADDRESS_FIELD && URL.canParse(text) ? `${new URL(text).origin}/${HIDDEN}` : text;
}
