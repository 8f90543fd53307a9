import { textOf, type Frame } from '../../upstream/socket/frame.ts';
import { isNamedInMessage } from '../../upstream/operation/upgrades.ts';
import type { Candidate } from '../plan.ts';

/**
 * Makes a check of the first message of a session, where that names the model and a header has said it before: what the upstream
 * reads must be what the session was counted by. Null: there is nothing to compare.
 */
export function modelCheck({
  call: { table },
  located: { upstream, path, model },
}: Pick<Candidate, 'call' | 'located'>): ((first: Frame) => boolean) | null {
  if (model === null || !isNamedInMessage(path)) return null;
  return (first) => {
    const shown = modelIn(first);
    return shown === null || table.routes.isSameModel(upstream, model, shown);
  };
}

/** Reads the model in `{ setup: { model } }`; null: none is named, so that the upstream serves none. */
function modelIn(frame: Frame): string | null {
  try {
    const { setup } = JSON.parse(textOf(frame)) as { setup?: { model?: unknown } };
    return typeof setup?.model === 'string' ? setup.model : null;
  } catch {
    return null;
  }
}
