import { useEffect, useRef, useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import { differencesOf, formOf, patchOf, type UpstreamForm } from '../../model/upstream-form.ts';
import type { UpstreamInfo } from '../../model/upstream-view.ts';
import { complain, say } from '../../ui/toasts.tsx';
import { KeySteps } from './key-steps.tsx';
import { UpstreamFields } from './upstream-fields.tsx';

interface UpstreamDialogProps {
  /** null for a new upstream. */
  readonly upstream: UpstreamInfo | null;
  /** All upstreams. A new one with an existing id changes that one. */
  readonly known: readonly UpstreamInfo[];
  /** Version of the configuration when the dialog opened. */
  readonly etag: string | null;
  /** Called after a save that keeps the dialog open. */
  readonly changed: () => void;
  readonly close: (isChanged: boolean) => void;
}

/** Edits an upstream. Once a key is stored, the dialog continues with the steps to a working call. */
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
      say(`Saved ${id}.`);
      for (const warning of result.body.warnings) complain(warning);
      if (typeof patch['auth'] !== 'object' || patch['auth'] === null) return close(true);
      changed();
      return setStored(id);
    }
    setProblem(result.status === 412 ? null : result.problem);
    if (result.status !== 412) return;
    const now = await api('GET /upstreams/{id}', { params: { id } });
    setChangedMeanwhile(now.ok ? differencesOf(base.upstream, now.body) : []);
    // The next save applies to the current version.
    setBase({ upstream: now.ok ? now.body : base.upstream, etag: now.etag ?? result.etag });
  };

  const title = upstream === null ? 'Add upstream' : `Edit ${upstream.id}`;
  const isNothing = upstream !== null && Object.keys(patch).length === 0;
  return (
    <dialog
      ref={dialog}
      class="upstream-dialog"
      aria-labelledby="upstream-title"
      onClose={() => close(stored !== null)}
    >
      <h2 id="upstream-title">{stored === null ? title : `Key for ${stored}`}</h2>
      {stored !== null && <KeySteps id={stored} />}
      <form
        hidden={stored !== null}
        onSubmit={(event) => {
          event.preventDefault();
          save().catch(() => complain('The upstream could not be saved. Try again.'));
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
            {isNothing ? 'No changes' : 'Save'}
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
  if (!isNew) return api('PATCH /upstreams/{id}', { params, body: patch, ...ifMatch });
  const values = Object.entries(patch).filter(([, value]) => value !== null);
  // The server validates the body, and reports errors with their paths.
  const body: Record<string, unknown> = Object.fromEntries(values);
  return api('PUT /upstreams/{id}', { params, body, ...ifMatch });
}

function ChangedMeanwhile({ differences }: { readonly differences: readonly string[] }) {
  return (
    <div role="alert" class="meanwhile">
      <p>
        The configuration changed in the meantime
        {differences.length === 0 ? ', but not this upstream.' : ':'}
      </p>
      <ul>
        {differences.map((line) => (
          <li key={line}>
            <code>{line}</code>
          </li>
        ))}
      </ul>
      <p>Nothing was saved. Save again to overwrite it with these values.</p>
    </div>
  );
}
