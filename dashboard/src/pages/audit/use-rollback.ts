import type { AnswerAt } from '../../../../src/admin/client.ts';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import type { RollbackTarget } from '../../model/rollback-target.ts';
import { say } from '../../ui/toasts.tsx';

export type RollbackPreview = AnswerAt<'POST /config/preview'>;

interface RollbackCheck {
  readonly target: RollbackTarget;
  /** null if the rollback is not possible, for the reason in `problem`. */
  readonly preview: RollbackPreview | null;
  readonly etag: string | null;
  readonly problem: string | null;
  /** Whether the configuration changed during the review. */
  readonly isAgain: boolean;
}

/** Previews a rollback, and applies exactly what was previewed. `If-Match` is the version of the preview. */
export function useRollback() {
  const [looked, setLooked] = useState<RollbackCheck | null>(null);
  const [isBusy, setBusy] = useState(false);

  const look = async (target: RollbackTarget, isAgain: boolean): Promise<void> => {
    // Keeps the checkbox state while the request is running.
    setLooked((before) => before && { ...before, target });
    const result = await api('POST /config/preview', {
      query: { as: 'rollback' },
      // The query determines how the server reads the body.
      body: target as Parameters<typeof api<'POST /config/preview'>>[1]['body'],
    });
    const preview = result.ok ? (result.body as RollbackPreview) : null;
    const problem = result.ok ? null : result.problem.detail;
    setLooked({ target, preview, etag: result.etag, problem, isAgain });
  };

  const apply = async (): Promise<void> => {
    if (looked?.preview === null || looked === null) return;
    const { target, etag } = looked;
    // The user has seen the conflicts. They are kept unless the user chose to overwrite them.
    const conflicts = target.conflicts === 'overwrite' ? 'overwrite' : 'keep';
    const ifMatch = etag === null ? {} : { ifMatch: etag };
    const result = await api('POST /config/rollback', {
      body: { ...target, conflicts },
      ...ifMatch,
    });
    if (result.ok) {
      say(target.undo === undefined ? 'Version restored.' : 'Change undone.');
      setLooked(null);
    } else if (result.status === 412) {
      await look(target, true);
    } else {
      setLooked({ ...looked, problem: result.problem.detail });
    }
  };

  const busy = async (act: () => Promise<void>): Promise<void> => {
    setBusy(true);
    await act();
    setBusy(false);
  };
  return {
    looked,
    isBusy,
    look: (target: RollbackTarget) => void busy(() => look(target, false)),
    apply: () => void busy(apply),
    close: () => setLooked(null),
  };
}
