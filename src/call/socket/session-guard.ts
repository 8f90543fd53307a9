import type { CutReason } from '../../core/words/outcome.ts';
import { forbiddenFor } from '../../routing/key-access.ts';
import {
  jsonTextOf,
  beginsObject,
  mayNameModel,
  readFrameModels,
  type Frame,
  type FrameModels,
} from '../../upstream/socket/messages.ts';
import { isNamedInMessage } from '../../upstream/operation/upgrades.ts';
import type { AuthenticatedCall } from '../call.ts';
import type { Located } from '../locate.ts';
import { modelRule } from '../model-rule.ts';
import { placementsOf, type Candidate } from '../plan.ts';

/** Why a client's message ends its session. */
interface Objection {
  readonly reason: CutReason;
  /** Detail of the reason, in plain text. */
  readonly why?: string;
}

/** Checks a client's message before it is forwarded. null if it may be. */
export type Guard = (frame: Frame) => Objection | null;

/** Whether the model of a session must be the one that its upstream reads, because groups or keys depend on it. */
export function isModelBound(
  call: AuthenticatedCall,
  { upstream, path, operation }: Pick<Located, 'upstream' | 'path' | 'operation'>,
): boolean {
  const { isTrue, isWanted } = modelRule(call, upstream, path, operation);
  return isTrue && isWanted;
}

/**
 * The guard of a session. null if its messages need no check. If the model must be verified, every message is checked:
 * all are parsed until the upstream knows the model, and afterwards those that may name one.
 */
export function sessionGuard(candidate: Candidate): Guard | null {
  const { call, located, members } = candidate;
  if (members !== null || isModelBound(call, located)) return strictGuard(candidate);
  // The header is trusted if callers pay themselves. A header that contradicts the first message is the caller's
  // mistake.
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
  // The upstream knows the URL's model from the upgrade, unless it reads the model only from a message.
  let isKnown = !isInMessage && candidate.located.operation.model.from === 'path';
  return (frame) => {
    const text = jsonTextOf(frame);
    if (text === null) return unreadable('the bytes are not UTF-8');
    if (!beginsObject(text)) return unreadable('it is not a JSON object');
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

  /** Whether a session of that model would be in the same groups, so that the session's slot counts it too. */
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
