import { useEffect, useRef, useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import { differencesOf, formOf, patchOf, type UpstreamForm } from '../../model/upstream-form.ts';
import type { UpstreamInfo } from '../../model/upstream-view.ts';
import { complain, say } from '../../ui/toasts.tsx';
import { KeySteps } from './key-steps.tsx';
import { UpstreamFields } from './upstream-fields.tsx';

interface UpstreamDialogProps {
  /** Null: a new one. */
  readonly upstream: UpstreamInfo | null;
  /** All that there are: a new one by the name of one of them changes that. */
  readonly known: readonly UpstreamInfo[];
  /** The version that was shown when it was opened. */
  readonly etag: string | null;
  /** Told when something is saved, and the dialog goes on. */
  readonly changed: () => void;
  readonly close: (isChanged: boolean) => void;
}

/**
 * Edits what is configured of an upstream. Nothing is sent before it is saved. Whoever stores a key is led on until calls
 * go by it.
 */
export function UpstreamDialog({ upstream, known, etag, changed, close }: UpstreamDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [base, setBase] = useState({ upstream, etag });
  const [form, setForm] = useState<UpstreamForm>(() => formOf(upstream));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [changedMeanwhile, setChangedMeanwhile] = useState<readonly string[] | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [stored, setStored] = useState<string | null>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const patch = patchOf(formOf(base.upstream), form);
  const id = form.id.trim();
  const named = upstream ?? known.find((one) => one.id === id) ?? null;

  const save = async (): Promise<void> => {
    setBusy(true);
    const result = await send(form, patch, named === null, base.etag);
    setBusy(false);
    if (result.ok) {
      say(`${id} is saved.`);
      for (const warning of result.body.warnings) complain(warning);
      if (typeof patch['auth'] !== 'object' || patch['auth'] === null) return close(true);
      changed();
      return setStored(id);
    }
    setProblem(result.status === 412 ? null : result.problem);
    if (result.status !== 412) return;
    const now = await api('getUpstream', { params: { id } });
    setChangedMeanwhile(now.ok ? differencesOf(base.upstream, now.body) : []);
    // The next save is on top of what is known now.
    setBase({ upstream: now.ok ? now.body : base.upstream, etag: now.etag ?? result.etag });
  };

  const title = upstream === null ? 'Add an upstream' : `Edit ${upstream.id}`;
  const isNothing = upstream !== null && Object.keys(patch).length === 0;
  return (
    <dialog
      ref={dialog}
      class="upstream-dialog"
      aria-labelledby="upstream-title"
      onClose={() => close(stored !== null)}
    >
      <h2 id="upstream-title">{stored === null ? title : `A key for ${stored}`}</h2>
      {stored !== null && <KeySteps id={stored} />}
      <form
        hidden={stored !== null}
        onSubmit={(event) => {
          event.preventDefault();
          save().catch(() => complain('It could not be saved.'));
        }}
      >
        {changedMeanwhile !== null && <ChangedMeanwhile differences={changedMeanwhile} />}
        <UpstreamFields
          form={form}
          change={setForm}
          isNew={upstream === null}
          known={known}
          builtIn={named?.is_built_in ? named : null}
          errors={problem?.errors ?? []}
        />
        {problem !== null && <p role="alert">{problem.detail}</p>}
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isBusy || isNothing}>
            {isNothing ? 'Nothing changed' : 'Save'}
          </button>
        </div>
      </form>
    </dialog>
  );
}

function send(
  form: UpstreamForm,
  patch: ReturnType<typeof patchOf>,
  isNew: boolean,
  etag: string | null,
) {
  const params = { id: form.id.trim() };
  const ifMatch = etag === null ? {} : { ifMatch: etag };
  if (!isNew) return api('patchUpstream', { params, body: patch, ...ifMatch });
  const said = Object.entries(patch).filter(([, value]) => value !== null);
  // The server checks it, and tells what is wrong by its path.
  const body: Record<string, unknown> = Object.fromEntries(said);
  return api('putUpstream', { params, body, ...ifMatch });
}

function ChangedMeanwhile({ differences }: { readonly differences: readonly string[] }) {
  return (
    <div role="alert" class="meanwhile">
      <p>
        Somebody changed the configuration meanwhile
        {differences.length === 0 ? ', but not this upstream.' : ':'}
      </p>
      <ul>
        {differences.map((line) => (
          <li key={line}>
            <code>{line}</code>
          </li>
        ))}
      </ul>
      <p>Nothing was saved. Save again to put what stands below over it.</p>
    </div>
  );
}
