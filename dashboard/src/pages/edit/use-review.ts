import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { GroupConfig } from '../../../../src/contract/config/config.ts';
import { api, type Problem } from '../../api.ts';
import { isSame, type EditedDocument } from '../../model/document.ts';
import type { FieldError } from '../../model/field-errors.ts';
import type { TemporaryChoice } from '../../model/temporary.ts';
import { say } from '../../ui/toasts.tsx';
import type { Reviewed } from './review.tsx';

interface Review {
  readonly reviewed: Reviewed | null;
  /** Current group if someone else changed it. null if deleted, undefined if unchanged. */
  readonly theirs: EditedDocument | null | undefined;
  readonly problem: string | null;
  readonly isBusy: boolean;
  /** Loads the effect of the change. */
  readonly look: (group: GroupConfig, base: EditedDocument) => Promise<void>;
  readonly apply: (
    group: GroupConfig,
    base: EditedDocument,
    lasts: TemporaryChoice,
  ) => Promise<void>;
  readonly close: () => void;
}

/** Attempts while the configuration keeps changing. */
const ATTEMPTS = 4;

/**
 * Compares the form with the current group, previews the change, and applies exactly what was previewed. `If-Match` is
 * the version of the preview.
 */
export function useReview(isNew: boolean, refuse: (errors: readonly FieldError[]) => void): Review {
  const { route } = useLocation();
  const [reviewed, setReviewed] = useState<Reviewed | null>(null);
  const [theirs, setTheirs] = useState<EditedDocument | null | undefined>(undefined);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  const fail = ({ detail, errors }: Problem): void => {
    setReviewed(null);
    refuse(errors ?? []);
    setProblem(detail);
  };

  const look = async (
    group: GroupConfig,
    base: EditedDocument,
    isAgain: boolean,
  ): Promise<void> => {
    setProblem(null);
    const params = { name: group.name };
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const present = await api('GET /groups/{name}', { params });
      if (!present.ok && present.status !== 404) return fail(present.problem);
      if (isNew && present.ok) return refuse([{ path: 'name', message: TAKEN }]);
      const now = present.ok ? (present.body as EditedDocument) : null;
      if (!isNew && !isSame(now, base)) {
        setReviewed(null);
        setTheirs(now);
        return;
      }
      const preview = await api('POST /groups/{name}/preview', {
        params,
        query: { as: 'put' },
        body: { ...group },
      });
      if (!preview.ok) return fail(preview.problem);
      if (!present.ok || present.etag === preview.etag) {
        // The types match those of the server, except that lists are read-only here.
        setReviewed({ preview: preview.body as Reviewed['preview'], etag: preview.etag, isAgain });
        return;
      }
    }
    setProblem('The configuration keeps changing. Try again.');
  };

  const apply = async (
    group: GroupConfig,
    base: EditedDocument,
    lasts: TemporaryChoice,
  ): Promise<void> => {
    const ifMatch = reviewed?.etag;
    if (ifMatch === undefined || ifMatch === null) return;
    const params = { name: group.name };
    const result = await api('PUT /groups/{name}', { params, query: lasts, body: group, ifMatch });
    if (result.ok) {
      say(isNew ? `Created ${group.name}.` : `Changed ${group.name}.`);
      route(`/admin/groups/${encodeURIComponent(group.name)}`);
    } else if (result.status === 412) {
      setReviewed(null);
      await look(group, base, true);
    } else {
      fail(result.problem);
    }
  };

  const busy = async (act: () => Promise<void>): Promise<void> => {
    setBusy(true);
    await act();
    setBusy(false);
  };
  return {
    reviewed,
    theirs,
    problem,
    isBusy,
    look: (group, base) => busy(() => look(group, base, false)),
    apply: (group, base, lasts) => busy(() => apply(group, base, lasts)),
    close: () => {
      setReviewed(null);
      setTheirs(undefined);
    },
  };
}

const TAKEN = 'a group with this name already exists';
