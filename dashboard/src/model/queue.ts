import { LANES, type Lane } from '../../../src/core/words/ticket.ts';

/** Maximum of queued calls shown individually. Longer queues show a count per lane. */
export const MARKS_MAX = 60;

export interface LaneSection<Mark> {
  readonly lane: Lane;
  readonly marks: readonly Mark[];
}

/** Lanes with queued calls, highest first. Within a lane, the next call comes first. */
export function sectionsOf<Mark extends { readonly lane: Lane }>(
  waiters: readonly Mark[],
): readonly LaneSection<Mark>[] {
  return LANES.map((lane) => ({ lane, marks: waiters.filter((one) => one.lane === lane) })).filter(
    ({ marks }) => marks.length > 0,
  );
}
