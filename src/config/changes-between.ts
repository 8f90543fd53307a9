// Step 5: from two configurations to their differences. check-config.ts lists all steps.

import type { AuditChange } from '../contract/audit.ts';
import { fieldsBetween, type FieldDifference } from './field-paths.ts';

/** Maximum changes of one entry that are written down; the rest is counted. */
const CHANGES_MAX = 100;

/** Maximum characters of one value, and of all of an entry. A row of the database ends at 2 MB. */
const VALUE_CHARACTERS_MAX = 4_000;
const ENTRY_CHARACTERS_MAX = 64_000;

/** Fields whose value is never written down. */
const HIDDEN_FIELDS = new Set(['hash']);
const HIDDEN = '(hidden)';

/** Field of a receiver's address, which behind its host often holds what lets somebody send to it. */
const ADDRESS_FIELD = 'url';

/** Lists what is different between two documents, field by field. Parts of lists are told apart by name or id. */
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

/** Writes a value down: without what is hidden, and not too long. */
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
