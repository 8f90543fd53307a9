import { LANES, type Lane } from '../../../src/core/words/ticket.ts';

/** Maximum of waiters that are shown one by one; more are a count for each lane. */
export const MARKS_MAX = 60;

/** One lane of the queue, as far as anybody waits in it. */
export interface LaneSection<Mark> {
  readonly lane: Lane;
  readonly marks: readonly Mark[];
}

/** The lanes in which somebody waits, the best first; within each the head first. */
export function sectionsOf<Mark extends { readonly lane: Lane }>(
  waiters: readonly Mark[],
): readonly LaneSection<Mark>[] {
  return LANES.map((lane) => ({ lane, marks: waiters.filter((one) => one.lane === lane) })).filter(
    ({ marks }) => marks.length > 0,
  );
}
