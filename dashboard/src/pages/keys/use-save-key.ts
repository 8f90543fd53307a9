import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type { keyDocumentSchema } from '../../../../src/contract/config/keys.ts';
import { api, type Problem } from '../../api.ts';
import { isSame, type EditedDocument } from '../../model/document.ts';
import type { FieldError } from '../../model/field-errors.ts';
import { keyDocument, keyPatch, type Key } from '../../model/keys.ts';
import { say } from '../../ui/toasts.tsx';

type KeyDocument = z.output<typeof keyDocumentSchema>;

interface NewKeySecret {
  readonly id: string;
  readonly text: string;
}

/** Attempts while the configuration keeps changing. */
const ATTEMPTS = 4;

/** Creates or changes a key. If someone else changed it, the user decides before anything is saved. */
export function useSaveKey(
  id: string | null,
  openedAt: string | null,
  refuse: (errors: readonly FieldError[]) => void,
  onSaved: () => void,
) {
  const [secret, setSecret] = useState<NewKeySecret | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [theirs, setTheirs] = useState<EditedDocument | null | undefined>(undefined);
  const [etag, setEtag] = useState(openedAt);
  const [isBusy, setBusy] = useState(false);

  const fail = ({ detail, errors, status }: Problem): void => {
    refuse(status === 409 && id === null ? [{ path: 'id', message: detail }] : (errors ?? []));
    setProblem(detail);
  };

  const preview = (document: KeyDocument) =>
    api('POST /keys/{id}/preview', {
      params: { id: document.id },
      body: { ...(id === null ? document : keyPatch(document as EditedDocument)) },
    });

  const create = async (document: KeyDocument): Promise<void> => {
    const result = await api('POST /keys', { body: document });
    if (result.ok) setSecret({ id: document.id, text: result.body.secret });
    else fail(result.problem);
  };

  const change = async (
    name: string,
    document: EditedDocument,
    base: EditedDocument,
  ): Promise<void> => {
    let version = etag;
    const params = { id: name };
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const ifMatch = version === null ? {} : { ifMatch: version };
      const result = await api('PATCH /keys/{id}', {
        params,
        body: { ...keyPatch(document) },
        ...ifMatch,
      });
      if (result.ok) {
        say(`Changed ${name}.`);
        return onSaved();
      }
      if (result.status !== 412) return fail(result.problem);
      const present = await api('GET /keys/{id}', { params });
      if (!present.ok && present.status !== 404) return fail(present.problem);
      version = present.etag;
      setEtag(version);
      const now = present.ok ? keyDocument(present.body as Key) : null;
      // Other changes of the configuration need no decision.
      if (!isSame(now, base)) return setTheirs(now);
    }
    setProblem('The configuration keeps changing. Try again.');
  };

  const save = async (document: KeyDocument, base: EditedDocument): Promise<void> => {
    setBusy(true);
    setProblem(null);
    await (id === null ? create(document) : change(id, document as EditedDocument, base));
    setBusy(false);
  };
  return {
    secret,
    problem,
    theirs,
    isBusy,
    fail,
    preview,
    save,
    resolve: () => setTheirs(undefined),
  };
}
