import { duration } from '../format.ts';
import {
  placedSentence,
  rejectionWords,
  upstreamSentence,
  WAIT_SENTENCES,
  type DecisionView,
} from './call-words.ts';
import { scopeWords } from './scope-words.ts';

/** One thing that happened to a call. */
export interface StoryStep {
  /** Null: at a time that nobody noted, between those before and after. */
  readonly at: string | null;
  readonly text: string;
  readonly tone: 'plain' | 'good' | 'bad';
}

/** A call, with what its group decided at each try. */
export interface ExplainedCall {
  readonly ticket: string;
  /** The first try first. */
  readonly tries: readonly DecisionView[];
  /** Decision that its line in a list tells. */
  readonly latest: DecisionView;
}

/** Joins the tries of one call; calls stand in the order of their latest try, as the list has them. */
export function callsOf(decisions: readonly DecisionView[]): ExplainedCall[] {
  const byTicket = Map.groupBy(decisions, ({ ticket }) => ticket);
  return [...byTicket.values()].flatMap((attempts) => {
    const inOrder = attempts.toSorted(
      (a, b) => Date.parse(a.decided_at) - Date.parse(b.decided_at),
    );
    const latest = inOrder.at(-1);
    return latest === undefined ? [] : [{ ticket: latest.ticket, tries: inOrder, latest }];
  });
}

/** Tells what happened to a call, from its arrival to its end, in plain words. */
export function storyOf({ tries: attempts }: ExplainedCall): StoryStep[] {
  return attempts.flatMap((decision, index) => [
    arrived(decision, index),
    ...waited(decision),
    decided(decision),
    ...placed(decision),
    ...answered(decision),
    ...ended(decision),
  ]);
}

function arrived(decision: DecisionView, index: number): StoryStep {
  const { position_at_arrival: ahead } = decision;
  const before =
    ahead === 0
      ? 'Nobody waited before it'
      : ahead === 1
        ? 'One call was ahead of it'
        : `${ahead} calls were ahead of it`;
  const came = index === 0 ? 'It arrived' : `It took its place again, for try ${index + 1}`;
  return { at: decision.arrived_at, text: `${came}. ${before}.`, tone: 'plain' };
}

function waited({ waited_for: cause, waited_ms: ms, scope }: DecisionView): StoryStep[] {
  if (cause === null) return [];
  const about = scope === undefined ? '' : ` This affected only calls with ${scopeWords(scope)}.`;
  const text = `It waited ${duration(ms)}. ${WAIT_SENTENCES[cause]}${about}`;
  return [{ at: null, text, tone: 'plain' }];
}

function decided(decision: DecisionView): StoryStep {
  const at = decision.decided_at;
  switch (decision.outcome) {
    case 'granted': {
      const slots = decision.slots === 1 ? 'a slot' : `${decision.slots} slots`;
      const atOnce = decision.waited_for === null ? ' at once' : '';
      return { at, text: `It was granted ${slots}${atOnce}.`, tone: 'good' };
    }
    case 'rejected': {
      const why =
        decision.rejection === null ? '' : `, because ${rejectionWords(decision.rejection)}`;
      return { at, text: `It was rejected${why}.`, tone: 'bad' };
    }
    case 'left':
      return { at, text: 'Its caller left before it was granted anything.', tone: 'bad' };
    case 'moved':
      return {
        at,
        text: 'The groups had changed, so it was routed again and kept its age.',
        tone: 'plain',
      };
  }
}

function placed(decision: DecisionView): StoryStep[] {
  const text = placedSentence(decision);
  return text === null ? [] : [{ at: null, text, tone: 'plain' }];
}

function answered(decision: DecisionView): StoryStep[] {
  const text = upstreamSentence(decision);
  if (text === null) return [];
  return [{ at: null, text, tone: decision.upstream_said === 'served' ? 'good' : 'bad' }];
}

const ENDS: ReadonlyMap<string, readonly [string, StoryStep['tone']]> = new Map([
  ['success', ['The answer ended, and the slot came back', 'good']],
  ['cancelled', ['The caller left or the call was cut short, and the slot came back', 'bad']],
  ['failed', ['The upstream failed or refused it, and the slot came back', 'bad']],
  ['refused', ['The upstream refused it for its own sake, and the slot came back', 'bad']],
  ['unused', ['The upstream was never called, and the slot was given back unused', 'plain']],
  ['expired', ['Its holder was gone, so the slot was taken back at the end of its lease', 'bad']],
] as const);

function ended(decision: DecisionView): StoryStep[] {
  if (decision.outcome !== 'granted') return [];
  const { ended: end, held_ms: heldMs } = decision;
  if (end === null) return [{ at: null, text: 'It still holds its slot.', tone: 'plain' }];
  const [words, tone] = ENDS.get(end) ?? [`It ended as ${end}`, 'plain' as const];
  const at =
    heldMs === null ? null : new Date(Date.parse(decision.decided_at) + heldMs).toISOString();
  return [{ at, text: `${words}${heldMs === null ? '' : `, after ${duration(heldMs)}`}.`, tone }];
}
