import { asLocal } from './history-range.ts';

/** Search in the audit log, as the form has it. */
export interface AuditFilter {
  readonly actor: string;
  readonly action: string;
  /** As `datetime-local` has it. */
  readonly since: string;
  readonly until: string;
}

export const NO_FILTER: AuditFilter = { actor: '', action: '', since: '', until: '' };

const MINUTE_MS = 60_000;

/** The filter that a link asks for: who, what, and a time, of which its form knows whole minutes: none of it is left out. */
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

/** The terms of a link to a filter, which says the same in every time zone; empty: none. */
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

/** The filter as the route takes it: nothing is sent of what was left empty. */
export function auditQuery(filter: AuditFilter): AuditParams {
  const query: AuditParams = {};
  const [actor, action] = [filter.actor.trim(), filter.action.trim()];
  if (actor !== '') query.actor = actor;
  if (action !== '') query.action = action;
  if (filter.since !== '') query.since = new Date(filter.since).toISOString();
  if (filter.until !== '') query.until = new Date(filter.until).toISOString();
  return query;
}

/** Says what is wrong with a filter; null: nothing. */
export function filterProblem({ since, until }: AuditFilter): string | null {
  const isTurned = since !== '' && until !== '' && Date.parse(since) > Date.parse(until);
  return isTurned ? 'The time from which to look is after the time until which.' : null;
}

/** Explains an actor of the audit log. */
export function actorWords(actor: string): string {
  if (actor === 'admin-token') {
    return 'Whoever has the ADMIN_TOKEN. With admin keys, one for each person, the log says who it was.';
  }
  if (actor.startsWith('headgate:')) return 'Headgate itself: a temporary change went back.';
  return actor.startsWith('access:')
    ? 'Signed in with Cloudflare Access'
    : 'Holder of this admin key';
}

/** Words each instant of a text as the reader's clock has it. */
export function withInstants(text: string, word: (at: string) => string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, word);
}

/** An action taken apart, as in `group openai-shared: patch`. */
export function actionParts(action: string): {
  readonly group: string | null;
  readonly verb: string;
} {
  const [, group, verb] = /^group (.+?): (.+)$/.exec(action) ?? [];
  return { group: group ?? null, verb: verb ?? action };
}
