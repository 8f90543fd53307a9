import { ticked } from '../field-error.ts';
import type { Config } from '../../contract/config/config.ts';
import { isRecord } from '../gone-fields.ts';

const NAMED_MAX = 5;

/** Warns of groups that put calls into lane `high`, which no gateway key allows. */
export function laneWarnings({ keys, groups }: Config): string[] {
  if (keys.length === 0 || keys.some(({ lane_max }) => lane_max === 'high')) return [];
  const named = groups.filter(
    ({ queue }) =>
      queue.lane_default === 'high' || queue.lane_rules.some(({ lane }) => lane === 'high'),
  );
  return named.map(
    ({ name }) =>
      `Group \`${name}\` puts calls into lane \`high\`, but no key allows that lane. ` +
      'Set `lane_max: high` on the keys whose calls may use it.',
  );
}

/** Warns of a document that relied on `high` as the default of `lane_max`. */
export function laneNotes(
  document: unknown,
  { keys, groups }: Pick<Config, 'keys' | 'groups'>,
): string[] {
  const { keys: writtenKeys, groups: writtenGroups } = isRecord(document) ? document : {};
  const silent = keys.filter((_, index) => !isSet(at(writtenKeys, index)));
  const notes: string[] = [];
  if (silent.length > 0) {
    notes.push(
      `${listed(
        'Key',
        silent.map(({ id }) => id),
      )} without \`lane_max\`: calls now get at most lane \`normal\`. The former default was \`high\`. ` +
        'Set `lane_max: high` for callers that may send `headgate-lane: high`, or `lane_max: normal` to end this warning.',
    );
  }
  const lanes = groups.filter(({ queue, fairness }, index) => {
    const { queue: written } = record(at(writtenGroups, index));
    const usesHigh =
      queue.lane_timeouts_ms.high !== null || Object.hasOwn(fairness.reserved, 'lane:high');
    return !isSet(written) && usesHigh;
  });
  if (keys.length === 0 && lanes.length > 0) {
    notes.push(
      `${listed(
        'Group',
        lanes.map(({ name }) => name),
      )} without \`queue.lane_max\`: a caller without a gateway key now gets at most lane \`normal\`. ` +
        'The former default was `high`. Set `queue.lane_max: high` if all callers are trusted.',
    );
  }
  return notes;
}

const record = (value: unknown): Readonly<Record<string, unknown>> =>
  isRecord(value) ? value : {};

const at = (list: unknown, index: number): unknown => (Array.isArray(list) ? list[index] : null);

const isSet = (written: unknown): boolean => 'lane_max' in record(written);

function listed(what: string, names: readonly string[]): string {
  const more = names.length - NAMED_MAX;
  const shown = ticked(names.slice(0, NAMED_MAX));
  return `${what}${names.length === 1 ? '' : 's'} ${shown}${more > 0 ? ` and ${more} more` : ''}`;
}
