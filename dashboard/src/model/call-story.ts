import { duration } from '../format.ts';
import {
  placedSentence,
  rejectionWords,
  upstreamSentence,
  WAIT_SENTENCES,
  type DecisionView,
} from './call-words.ts';
import { scopeWords } from './scope-words.ts';

export interface StoryStep {
  /** null if the time is unknown. It lies between the previous and the next step. */
  readonly at: string | null;
  readonly text: string;
  readonly tone: 'plain' | 'good' | 'bad';
}

/** A call with the decisions of its group, one per attempt. */
export interface ExplainedCall {
  readonly ticket: string;
  /** Oldest first. */
  readonly attempts: readonly DecisionView[];
  /** Decision that a list shows. */
  readonly latest: DecisionView;
}

/** Groups decisions by call. Calls keep the order of their latest attempt in the list. */
export function callsOf(decisions: readonly DecisionView[]): ExplainedCall[] {
  const byTicket = Map.groupBy(decisions, ({ ticket }) => ticket);
  return [...byTicket.values()].flatMap((attempts) => {
    const inOrder = attempts.toSorted(
      (a, b) => Date.parse(a.decided_at) - Date.parse(b.decided_at),
    );
    const latest = inOrder.at(-1);
    return latest === undefined ? [] : [{ ticket: latest.ticket, attempts: inOrder, latest }];
  });
}

export function storyOf({ attempts }: ExplainedCall): StoryStep[] {
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
      ? 'No calls were ahead of it'
      : ahead === 1
        ? 'One call was ahead of it'
        : `${ahead} calls were ahead of it`;
  const came = index === 0 ? 'It arrived' : `It was queued again, for attempt ${index + 1}`;
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
      const atOnce = decision.waited_for === null ? ' immediately' : '';
      return { at, text: `It was granted ${slots}${atOnce}.`, tone: 'good' };
    }
    case 'rejected': {
      const why =
        decision.rejection === null ? '' : `, because ${rejectionWords(decision.rejection)}`;
      return { at, text: `It was rejected${why}.`, tone: 'bad' };
    }
    case 'left':
      return { at, text: 'The caller left before a slot was granted.', tone: 'bad' };
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
  ['success', ['The response ended, and the slot was released', 'good']],
  ['cancelled', ['The caller left or the call was cut short, and the slot was released', 'bad']],
  ['failed', ['The upstream failed or refused it, and the slot was released', 'bad']],
  ['refused', ['The upstream refused this particular call, and the slot was released', 'bad']],
  ['unused', ['The upstream was never called, and the slot was released unused', 'plain']],
  ['expired', ['The lease expired because its holder was gone, and the slot was released', 'bad']],
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
