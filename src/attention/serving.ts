import { NOTHING_SERVED_MS, type Attention, type Warning } from '../contract/attention.ts';
import type { GroupStatus } from '../contract/group-status.ts';
import type { RefusalCount } from '../contract/reasons.ts';
import type { Lately } from '../contract/status.ts';
import { namesWords, plural, spanWords } from '../core/words/figures.ts';

/** Budgets of a group in US dollars. null means no budget for that period. */
export interface BudgetAmountsUsd {
  readonly hour: number | null;
  readonly day: number | null;
  readonly month: number | null;
}

/** A secret that cannot be used. */
export interface MissingSecret {
  readonly subject: Attention['subject'];
  readonly group: string | null;
  readonly secret: string;
  /** A predicate, as in `is not set`. */
  readonly fault: string;
  /** A clause without a full stop, as in `calls to this upstream are rejected`. */
  readonly effect: string;
  /** How to set the secret in this deployment. */
  readonly advice: string;
}

/** Facts about a deployment at one instant. */
export interface AttentionFacts {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly groups: readonly GroupStatus[];
  /** Calls that Headgate itself rejected in the last 10 minutes. */
  readonly refusals: readonly RefusalCount[];
  /** The last warnings of all pools, the latest first. */
  readonly warnings: readonly Warning[];
  readonly secrets: readonly MissingSecret[];
  readonly configWarnings: readonly string[];
  /** Budgets by group name. */
  readonly budgets: ReadonlyMap<string, BudgetAmountsUsd>;
}

/** Returns the key or team whose limits a group holds, or the group itself. */
export function subjectOf(group: string): Attention['subject'] {
  const [, kind, id] = /^(key|team):(.+)$/s.exec(group) ?? [];
  if ((kind !== 'key' && kind !== 'team') || id === undefined) return { kind: 'group', id: group };
  return { kind, id };
}

/** Refusals in a row after which an upstream counts as refusing every call, however short the time. */
const REFUSED_MIN = 5;

const MINUTE_MS = 60_000;

/** Maximum length of an upstream's message within a sentence. */
const QUOTED_MAX = 80;

/** Meanings of the kinds of refusals, for those without a message. */
const KIND_WORDS: Readonly<Record<string, string>> = {
  egress: "calls from the Worker's location are refused",
  unauthorized: 'the key is refused',
  quota: 'the account has no quota left',
  never_fits: 'the calls are too large',
  long_window: 'the limit of a day or a plan is used up',
  concurrency: 'too many calls at once',
  overload: 'overloaded',
  tokens: 'too many tokens',
  requests: 'too many requests',
  ramp: 'the number of calls rose too quickly',
  unknown: 'no reason given',
  error: 'no response, or a server error',
};

const STATUS_WORDS: Readonly<Record<string, string>> = {
  '400': 'the requests are invalid',
  '401': 'the key is refused',
  '403': 'the key is not allowed to do this',
  '404': 'the path or the model is unknown',
  '405': 'the path is wrong',
  '422': 'the requests are invalid',
};

/** Advice by error status. For other statuses, only the client has the error message. */
const STATUS_ADVICE: Readonly<Record<string, string>> = {
  '401': 'Set a valid key for the upstream, or correct the provider keys of the clients.',
  '403': 'Allow the key at the provider to make such calls, or set another key.',
  '404': 'Check the `base_url` of the upstream, and the models that clients request.',
  '405': 'Check the `base_url` of the upstream.',
};

const ASK_CALLERS =
  'Check the last calls of the group on the Calls page, and ask their clients for the error message.';

/** Rejections by Headgate that only follow from failures of the upstream. */
const OF_UPSTREAM: ReadonlySet<string> = new Set(['breaker_open', 'upstream_unreachable']);

/** Error statuses that apply to every call, not only to some requests. */
const REFUSING_STATUSES: ReadonlySet<string> = new Set(['401', '403']);

/** The last refusal of one kind at one upstream. */
interface GroupLastRefusal {
  readonly upstream: string;
  readonly kind: string;
  readonly at: string;
  readonly status?: number;
  readonly message?: string;
}

type RefusalsSince = Pick<Lately, 'refusals'> & { readonly since: string };

/** Returns why a group serves nothing. null if it serves calls or has none. */
export function notServing(
  group: GroupStatus,
  { now }: Pick<AttentionFacts, 'now'>,
  isRefusedHere: boolean,
): Attention | null {
  const { lately, state } = group;
  if (lately === undefined || lately.failing_since === null) return null;
  const { failing_since: since, refusals, answered_errors: errors = {} } = lately;
  const refused = sumOf(refusals, (kind) => kind !== 'error');
  const refusedKey = sumOf(errors, (status) => REFUSING_STATUSES.has(status));
  const isRefused = refused > 0 && state === 'refused by upstream';
  const isPlain = lately.is_failing && (refused + refusedKey >= REFUSED_MIN || isRefused);
  const answered = sumOf(errors, () => true);
  const failed = sumOf(refusals, () => true) + sumOf(lately.rejected, () => true) + answered;
  if (isPlain && 2 * (refused + refusedKey) >= failed) {
    return entry('refused_by_upstream', group, since, refused + refusedKey, {
      ...(refusedKey > refused
        ? errorMessage(group, since, errors)
        : {
            ...upstreamMessage(group, { since, refusals }, 'refuse', (kind) => kind !== 'error'),
            advice: adviceOn(refusals),
          }),
    });
  }
  if (!lately.is_failing || now - Date.parse(since) < NOTHING_SERVED_MS || isRefusedHere) {
    return null;
  }
  const brokenOff = failed === 0 ? (lately.ended['failed'] ?? 0) : 0;
  const count = failed + brokenOff + (lately.ended['cancelled'] ?? 0);
  return entry('nothing_served', group, since, count, {
    advice:
      'Check the last calls of the group on the Calls page, and the status page of the provider.',
    ...causeOf(group, lately, since, now),
  });
}

/** Returns an entry if the breaker is open for all calls of a group. */
export function brokenUpstream(
  group: GroupStatus,
  { warnings }: Pick<AttentionFacts, 'warnings'>,
): Attention | null {
  const { breaker, about, queued, lately } = group;
  if (breaker === 'closed' || about !== undefined) return null;
  const raised = warnings.find(
    ({ kind, group: of }) => kind === 'breaker_open' && of === group.name,
  );
  const since = lately?.failing_since ?? raised?.at ?? null;
  const refusals = lately?.refusals ?? {};
  const isShown = since !== null && sumOf(refusals, () => true) > 0;
  const reported = isShown
    ? upstreamMessage(group, { since, refusals }, 'fail', () => true)
    : { says: 'The upstream is failing.', words: null };
  const phase = breaker === 'open' ? 'open' : 'half open';
  return entry(
    'breaker_open',
    group,
    since,
    sumOf(refusals, () => true),
    {
      words: reported.words,
      says: `${reported.says.slice(0, -1)}. The breaker is ${phase}${waiting(queued)}.`,
      advice: 'Check the status page of the provider. The breaker closes after a successful probe.',
    },
  );
}

/** Describes which upstream refuses or fails calls, how often and with which message. */
function upstreamMessage(
  group: GroupStatus,
  { since, refusals }: RefusalsSince,
  verb: 'refuse' | 'fail',
  isMeant: (kind: string) => boolean,
): { readonly says: string; readonly words: string | null } {
  const last = lastRefusals(group, since).filter(({ kind }) => isMeant(kind));
  const names = [...new Set(last.map(({ upstream }) => `\`${upstream}\``))];
  const [latest] = last;
  const [kind = latest?.kind ?? 'unknown'] = Object.entries(refusals)
    .filter(([of]) => isMeant(of))
    .toSorted(([, a], [, b]) => b - a)
    .map(([of]) => of);
  const shown = last.find((one) => one.kind === kind) ?? latest;
  const subject = names.length === 0 ? 'The upstream' : namesWords(names);
  const what = `${subject} ${verb}${names.length > 1 ? '' : 's'} every call`;
  const count = sumOf(refusals, isMeant).toLocaleString('en');
  const words = shown?.message ?? null;
  const status = shown?.status === undefined ? 'refused' : String(shown.status);
  const quoted = words === null ? ` (${KIND_WORDS[kind] ?? kind})` : ` '${cut(words)}'`;
  const lastAt = group.lately?.failed_at ?? latest?.at ?? since;
  return { says: `${what}: ${count} × ${status}${quoted} in ${within(since, lastAt)}.`, words };
}

/** Returns advice for the most frequent kind of refusals. */
function adviceOn(refusals: Lately['refusals']): string {
  const kinds = Object.entries(refusals).filter(([kind]) => kind !== 'error');
  const [[most] = ['']] = kinds.toSorted(([, a], [, b]) => b - a);
  return most === 'overload'
    ? 'Check the status page of the provider, or send the calls to another upstream.'
    : 'Read the message. Raise the limit or the credit at the provider, set a valid key, or send the calls to another upstream.';
}

/** Describes the error statuses of an upstream. Error messages may repeat text of clients, so they are not stored. */
function errorMessage(
  { upstreams, lately }: GroupStatus,
  since: string,
  errors: Lately['refusals'],
): Pick<Attention, 'says' | 'words' | 'advice'> {
  const called = upstreams.filter(({ last_call_at: at }) => at !== null && at >= since);
  const names = called.map(({ id }) => `\`${id}\``);
  const subject = names.length === 0 ? 'The upstream' : namesWords(names);
  const sorted = Object.entries(errors).toSorted(([, a], [, b]) => b - a);
  const counts = sorted.map(([status, count]) => {
    const meaning = STATUS_WORDS[status];
    const why = meaning === undefined ? '' : ` (${meaning})`;
    return `${count.toLocaleString('en')} × ${status}${why}`;
  });
  const [[most] = ['']] = sorted;
  return {
    says: `${subject} answer${names.length > 1 ? '' : 's'} every call with an error: ${namesWords(counts)} in ${within(since, lately?.failed_at ?? since)}.`,
    words: null,
    advice: STATUS_ADVICE[most] ?? ASK_CALLERS,
  };
}

/** Describes the most frequent cause of a group that serves nothing. */
function causeOf(
  group: GroupStatus,
  lately: Lately,
  since: string,
  now: number,
): { readonly says: string; readonly words: string | null; readonly advice?: string } {
  const { refusals, rejected, ended, answered_errors: errors = {} } = lately;
  const answered = sumOf(errors, () => true);
  const atUpstream = sumOf(refusals, () => true);
  const isOwn = (reason: string): boolean => atUpstream === 0 || !OF_UPSTREAM.has(reason);
  const here = sumOf(rejected, isOwn);
  const broken = ended['failed'] ?? 0;
  const cancelled = ended['cancelled'] ?? 0;
  const outcome = `No call was served for ${spanWords(now - Date.parse(since))}.`;
  if (answered > Math.max(atUpstream, here, cancelled)) {
    const reported = errorMessage(group, since, errors);
    return { ...reported, says: `${reported.says} ${outcome}` };
  }
  if (atUpstream > 0 && atUpstream >= here) {
    const reported = upstreamMessage(group, { since, refusals }, 'fail', () => true);
    return { ...reported, says: `${reported.says} ${outcome}` };
  }
  if (here > 0 && here >= cancelled) {
    const reasons = Object.entries(rejected)
      .filter(([reason]) => isOwn(reason))
      .toSorted(([, a], [, b]) => b - a)
      .map(([reason, count]) => `${count.toLocaleString('en')} × \`${reason}\``);
    return { says: `Headgate rejects every call: ${namesWords(reasons)}. ${outcome}`, words: null };
  }
  if (broken > cancelled) {
    const responses = plural(broken, 'response was', 'responses were');
    return { says: `No response completes: ${responses} cut off. ${outcome}`, words: null };
  }
  const left = plural(cancelled, 'client');
  return { says: `No response arrives in time: ${left} disconnected. ${outcome}`, words: null };
}

/** Returns the last refusals of the group's upstreams since an instant, the latest first. */
export function lastRefusals(group: GroupStatus, since: string): GroupLastRefusal[] {
  return group.upstreams
    .flatMap(({ id, last_refusals: all }) =>
      all.filter(({ at }) => at >= since).map((one) => ({ ...one, upstream: id })),
    )
    .toSorted((a, b) => b.at.localeCompare(a.at));
}

export function entry(
  rule: Attention['rule'],
  group: GroupStatus,
  since: string | null,
  count: number | null,
  reported: Pick<Attention, 'says' | 'words' | 'advice'>,
): Attention {
  return { rule, subject: subjectOf(group.name), group: group.name, since, count, ...reported };
}

/** Returns the number of queued calls as the end of a sentence. */
export function waiting(queued: number): string {
  return queued === 0 ? '' : `, and ${plural(queued, 'call is queued', 'calls are queued')}`;
}

function within(since: string, until: string): string {
  const ms = Date.parse(until) - Date.parse(since);
  return plural(Math.max(1, Math.round(ms / MINUTE_MS)), 'minute');
}

function cut(words: string): string {
  return words.length <= QUOTED_MAX ? words : `${words.slice(0, QUOTED_MAX - 1).trimEnd()}…`;
}

function sumOf(
  tally: Readonly<Record<string, number>>,
  isMeant: (name: string) => boolean,
): number {
  return Object.entries(tally).reduce((sum, [of, count]) => (isMeant(of) ? sum + count : sum), 0);
}
