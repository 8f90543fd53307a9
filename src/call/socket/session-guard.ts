import type { CutReason } from '../../core/words/cut.ts';
import { forbiddenFor } from '../../routing/key-access.ts';
import { jsonTextOf, type Frame } from '../../upstream/socket/frame.ts';
import {
  beginsObject,
  mayNameModel,
  readFrameModels,
  type FrameModels,
} from '../../upstream/socket/frame-models.ts';
import { isNamedInMessage } from '../../upstream/operation/upgrades.ts';
import type { KnownCall } from '../call.ts';
import type { Located } from '../locate.ts';
import { modelRule } from '../model-rule.ts';
import { placementsOf, type Candidate } from '../plan.ts';

/** Why a message of a client ends its session. */
interface Objection {
  readonly reason: CutReason;
  /** Completes the reason, in plain text. */
  readonly why?: string;
}

/** Looks at a message of a client before it goes on; null: it may. */
export type Guard = (frame: Frame) => Objection | null;

/** Tells whether the model of a session must be the one that its upstream reads, because something goes by it. */
export function isModelBound(
  call: KnownCall,
  { upstream, path, operation }: Pick<Located, 'upstream' | 'path' | 'operation'>,
): boolean {
  const { isTrue, isWanted } = modelRule(call, upstream, path, operation);
  return isTrue && isWanted;
}

/**
 * Makes the guard of a session; null: its messages need not be looked at. Where the model must be true, every message is: the
 * first ones are read whole until the upstream knows its model, and from then on those that may name one.
 */
export function sessionGuard(candidate: Candidate): Guard | null {
  const { call, located, members } = candidate;
  if (members !== null || isModelBound(call, located)) return strictGuard(candidate);
  // The header is believed where its callers pay for themselves; one that is plainly wrong is a mistake of theirs.
  return isNamedInMessage(located.path) && located.model !== null ? firstGuard(candidate) : null;
}

function firstGuard(candidate: Candidate): Guard {
  let isFirst = true;
  return (frame) => {
    if (!isFirst) return null;
    isFirst = false;
    const text = jsonTextOf(frame);
    const models = text === null ? null : readFrameModels(text);
    return models?.kind === 'read' ? otherModel(candidate, models) : null;
  };
}

function strictGuard(candidate: Candidate): Guard {
  const isInMessage = isNamedInMessage(candidate.located.path);
  // What the URL names, the upstream knows from the upgrade, unless it reads the model in a message alone.
  let isKnown = !isInMessage && candidate.located.operation.model.from === 'path';
  return (frame) => {
    const text = jsonTextOf(frame);
    if (text === null) return unreadable('bytes that are no UTF-8');
    if (!beginsObject(text)) return unreadable('no JSON object');
    if (isKnown && !mayNameModel(text)) return null;
    const models = readFrameModels(text);
    if (models.kind === 'unreadable') return unreadable(models.why);
    if (isInMessage && isKnown && models.isSetup) {
      return { reason: 'message_refused', why: 'a second setup' };
    }
    if (isInMessage && !isKnown && !(models.isSetup && models.main.length > 0)) {
      return { reason: 'message_refused', why: 'expected a setup with its model first' };
    }
    // A session that only transcribes names no other model.
    isKnown ||= models.main.length > 0 || models.beside.length > 0;
    return otherModel(candidate, models);
  };
}

function unreadable(why: string): Objection {
  return { reason: 'message_unreadable', why };
}

function otherModel(candidate: Candidate, { main, beside }: FrameModels): Objection | null {
  const { call, located } = candidate;
  const { upstream, model } = located;
  const isSame = (one: string): boolean =>
    model !== null && call.table.routes.isSameModel(upstream, model, one);
  const isCounted = main.every(isSame) && beside.every((one) => isSame(one) || isBeside(one));
  return isCounted ? null : { reason: 'other_model' };

  /** Whether a session of that model would be in the same groups: then the slot that is held counts it too. */
  function isBeside(one: string): boolean {
    const { key } = call.caller;
    const placed = placementsOf(call, { ...candidate.routed, model: one });
    if (key !== null && forbiddenFor(key, placed) !== null) return false;
    const groups = placed.map(({ group }) => group).toSorted();
    return groups.join(' ') === groupsOf(candidate).join(' ');
  }
}

function groupsOf({ placements }: Candidate): readonly string[] {
  return placements.map(({ group }) => group).toSorted();
}
