import type { AnswerAt } from '../../../src/admin/client.ts';
import type * as z from 'zod';
import type { auditEntrySchema } from '../../../src/contract/history.ts';
import { keyDocumentSchema } from '../../../src/contract/config/keys.ts';
import { count, usd } from '../format.ts';
import type { EditedDocument } from './document.ts';

export type Key = AnswerAt<'GET /keys/{id}'>;
export const BLANK_KEY: EditedDocument = { ...keyDocumentSchema.parse({ id: 'new' }), id: '' };

const OWN = Object.keys(keyDocumentSchema.shape);

export function keyDocument(key: Key): EditedDocument {
  return Object.fromEntries(Object.entries(key).filter(([name]) => OWN.includes(name)));
}

/** Converts a document to a merge patch. Missing fields are reset to their defaults. */
export function keyPatch(document: EditedDocument): EditedDocument {
  return Object.fromEntries(OWN.map((name) => [name, document[name] ?? null]));
}

/** Limits of a key in a few words. null if it has none. */
export function limitsText({ limits }: Pick<Key, 'limits'>): string | null {
  const { budget_usd: budget } = limits;
  const parts = [
    limitText(limits.max_concurrency, 'slots'),
    limitText(limits.rpm, 'req/min'),
    limitText(limits.tpm, 'tokens/min'),
    limitText(limits.rpd, 'req/day'),
    limitText(limits.tpd, 'tokens/day'),
    budget.per_hour === null ? null : `${usd(budget.per_hour)}/hour`,
    budget.per_day === null ? null : `${usd(budget.per_day)}/day`,
    budget.per_month === null ? null : `${usd(budget.per_month)}/month`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join(', ');
}

function limitText(limit: number | null, unit: string): string | null {
  return limit === null ? null : `${count(limit)} ${unit}`;
}

/** Time of the last rotation by key id, from audit entries in newest-first order. */
export function rotations(
  entries: readonly Pick<z.output<typeof auditEntrySchema>, 'action' | 'at'>[],
): Map<string, string> {
  const latest = new Map<string, string>();
  for (const { action, at } of entries) {
    const id = /^key (.+): rotate$/.exec(action)?.[1];
    if (id !== undefined && !latest.has(id)) latest.set(id, at);
  }
  return latest;
}

/** Choices for the time that the previous key stays valid after a rotation. */
export const GRACES = [
  { ms: 0, label: 'none' },
  { ms: 3_600_000, label: '1 hour' },
  { ms: 86_400_000, label: '1 day' },
  { ms: 604_800_000, label: '7 days' },
  { ms: 2_592_000_000, label: '30 days' },
] as const;

export function keySnippet(origin: string, secret: string): string {
  return [
    `curl ${origin}/openai/v1/chat/completions \\`,
    `  -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' \\`,
    `  -d '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}'`,
  ].join('\n');
}

export function adminKeySnippet(origin: string, secret: string): string {
  return `curl ${origin}/admin/api/status \\\n  -H 'Authorization: Bearer ${secret}'`;
}
