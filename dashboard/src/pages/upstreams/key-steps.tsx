import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import type { UpstreamDetail } from '../../model/upstream-view.ts';
import { resting } from '../../idle-page.ts';
import { may } from '../../session.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { SendTestCall } from '../setup/send-test-call.tsx';
import { MakeGroup } from './make-group.tsx';

/** How often it is asked whether the key is there: somebody types it in a terminal meanwhile. */
const ASK_EVERY_MS = 2_000;

/** Leads from a stored secret's name to a call that goes by its key: the command, the key, a group, a call. */
export function KeySteps({ id }: { readonly id: string }) {
  const [upstream, askAgain] = useUpstream(id);
  const secret = upstream?.secret ?? null;
  if (upstream === null || secret === null) return <p aria-busy="true" />;
  return (
    <ol class="key-steps">
      <li>
        <h3>Set the key</h3>
        <pre tabIndex={0} role="region" aria-label="The line to run">
          {secret.command}
        </pre>
        <p>
          <CopyButton label="Copy" text={secret.command} /> {secret.afterwards}
        </p>
      </li>
      <li aria-live="polite">
        <h3>{secret.is_set ? '✓ It is here' : '… Not here yet'}</h3>
        <p class="help">
          {secret.is_set ? (
            <>
              <code>{secret.name}</code> is set. What it holds is told nobody.
            </>
          ) : (
            <>
              Headgate is asked for <code>{secret.name}</code> every two seconds while this is open.
            </>
          )}
        </p>
      </li>
      <li>
        <h3>Make a group for it</h3>
        {may('admin') && <MakeGroup upstream={upstream} made={askAgain} />}
      </li>
      <li>
        <h3>Send a test call</h3>
        <p class="help">
          A stored key is used by callers with a gateway key alone: put one in, or{' '}
          <a href="/admin/keys">make one</a>.
        </p>
        <SendTestCall upstreams={[upstream]} />
      </li>
    </ol>
  );
}

/** Reads an upstream again and again: a key appears by itself, after a restart too. Null: not yet. */
function useUpstream(id: string): readonly [UpstreamDetail | null, () => void] {
  const [upstream, setUpstream] = useState<UpstreamDetail | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      if (document.hidden || resting.peek() !== null) return;
      const result = await api('getUpstream', { params: { id } });
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
