import { asLocal } from './history-range.ts';

export interface AuditFilter {
  readonly actor: string;
  readonly action: string;
  /** Value of a `datetime-local` input. */
  readonly since: string;
  readonly until: string;
}

export const NO_FILTER: AuditFilter = { actor: '', action: '', since: '', until: '' };

const MINUTE_MS = 60_000;

/** Filter of a link. Its times are widened to whole minutes, the resolution of the form. */
export function filterIn(query: Readonly<Record<string, string>>): AuditFilter {
  const local = (instant: string | undefined, toMinute: (minutes: number) => number): string => {
    const ms = Date.parse(instant ?? '');
    return Number.isNaN(ms) ? '' : asLocal(toMinute(ms / MINUTE_MS) * MINUTE_MS);
  };
  return {
    actor: query['actor'] ?? '',
    action: query['action'] ?? '',
    since: local(query['from'], Math.floor),
    until: local(query['to'], Math.ceil),
  };
}

/** Query of a link to a filter. Times are in UTC, so that it means the same in every time zone. */
export function linkTerms(filter: AuditFilter): Record<string, string> {
  const { actor = '', action = '', since = '', until = '' } = auditQuery(filter);
  return { actor, action, from: since, to: until };
}

interface AuditParams {
  actor?: string;
  action?: string;
  since?: string;
  until?: string;
}

/** Query of the API route. Empty fields are omitted. */
export function auditQuery(filter: AuditFilter): AuditParams {
  const query: AuditParams = {};
  const [actor, action] = [filter.actor.trim(), filter.action.trim()];
  if (actor !== '') query.actor = actor;
  if (action !== '') query.action = action;
  if (filter.since !== '') query.since = new Date(filter.since).toISOString();
  if (filter.until !== '') query.until = new Date(filter.until).toISOString();
  return query;
}

/** Error of a filter. null if it is valid. */
export function filterProblem({ since, until }: AuditFilter): string | null {
  const isTurned = since !== '' && until !== '' && Date.parse(since) > Date.parse(until);
  return isTurned ? '“From” must be earlier than “Until”.' : null;
}

export function actorWords(actor: string): string {
  if (actor === 'admin-token') {
    return 'Someone with the ADMIN_TOKEN. To see who makes changes, give each person an admin key.';
  }
  if (actor.startsWith('headgate:')) return 'Headgate reverted a temporary change.';
  return actor.startsWith('access:')
    ? 'Signed in with Cloudflare Access'
    : 'Holder of this admin key';
}

/** Replaces each instant in a text, to show it in the time zone of the reader. */
export function withInstants(text: string, word: (at: string) => string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, word);
}

/** Splits an action, such as `group openai-shared: patch`. */
export function actionParts(action: string): {
  readonly group: string | null;
  readonly verb: string;
} {
  const [, group, verb] = /^group (.+?): (.+)$/.exec(action) ?? [];
  return { group: group ?? null, verb: verb ?? action };
}
