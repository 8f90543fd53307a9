import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import type { UpstreamDetail } from '../../model/upstream-view.ts';
import { resting } from '../../idle-page.ts';
import { may } from '../../session.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { SendTestCall } from '../setup/send-test-call.tsx';
import { MakeGroup } from './make-group.tsx';

/** Polling interval while the user sets the key in a terminal. */
const ASK_EVERY_MS = 2_000;

/** Steps from the name of a secret to a working call: set the key, wait for it, create a group, send a call. */
export function KeySteps({ id }: { readonly id: string }) {
  const [upstream, askAgain] = useUpstream(id);
  const secret = upstream?.secret ?? null;
  if (upstream === null || secret === null) return <p aria-busy="true" />;
  return (
    <ol class="key-steps">
      <li>
        <h3>Set the key</h3>
        <pre tabIndex={0} role="region" aria-label="Command to run">
          {secret.command}
        </pre>
        <p>
          <CopyButton label="Copy" text={secret.command} /> {secret.afterwards}
        </p>
      </li>
      <li aria-live="polite">
        <h3>{secret.is_set ? '✓ The key is set' : '… Waiting for the key'}</h3>
        <p class="help">
          {secret.is_set ? (
            <>
              <code>{secret.name}</code> is set. Its value is never shown.
            </>
          ) : (
            <>
              This dialog checks for <code>{secret.name}</code> every two seconds.
            </>
          )}
        </p>
      </li>
      <li>
        <h3>Create a group for it</h3>
        {may('admin') && <MakeGroup upstream={upstream} made={askAgain} />}
      </li>
      <li>
        <h3>Send a test call</h3>
        <p class="help">
          Only callers with a gateway key can use a stored key. Enter one, or{' '}
          <a href="/admin/keys">create one</a>.
        </p>
        <SendTestCall upstreams={[upstream]} />
      </li>
    </ol>
  );
}

/** Polls an upstream until its key appears, also after a restart. null until loaded. */
function useUpstream(id: string): readonly [UpstreamDetail | null, () => void] {
  const [upstream, setUpstream] = useState<UpstreamDetail | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      if (document.hidden || resting.peek() !== null) return;
      const result = await api('GET /upstreams/{id}', { params: { id } });
      if (!isOver && result.ok) setUpstream(result.body);
    };
    const askSafely = (): void => void ask().catch(() => undefined);
    askSafely();
    const timer = setInterval(askSafely, ASK_EVERY_MS);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [id, round]);
  return [upstream, () => setRound((before) => before + 1)];
}
