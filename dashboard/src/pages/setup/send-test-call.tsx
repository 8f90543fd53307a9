import { useRef, useState } from 'preact/hooks';
import { firstModelOf, isCallable, testCallOf } from '../../model/test-call.ts';
import { isUsed, type UpstreamInfo } from '../../model/upstream-view.ts';
import { CallAnswer, type TestCallAnswer } from './call-answer.tsx';

const SHOWN_CHARS = 2_000;

/**
 * Sends one short call through Headgate, as a client would. The key stays in this form. It is sent only to this
 * address, and not stored.
 */
export function SendTestCall({ upstreams }: { readonly upstreams: readonly UpstreamInfo[] }) {
  const callable = upstreams.filter(isCallable);
  const first = callable.find(isUsed) ?? callable.find(({ id }) => id === 'openai');
  const [id, setId] = useState<string | null>(null);
  const [model, setModel] = useState<string | null>(null);
  const [key, setKey] = useState('');
  const [answered, setAnswered] = useState<TestCallAnswer | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const call = useRef<AbortController | null>(null);
  const [isBusy, setBusy] = useState(false);
  const upstream = callable.find((one) => one.id === id) ?? first;
  const modelName = model ?? firstModelOf(upstream?.id ?? '');

  const send = async (): Promise<void> => {
    if (upstream === undefined) return;
    call.current = new AbortController();
    setBusy(true);
    setAnswered(null);
    setWrong(null);
    try {
      setAnswered(
        await sendCall(testCallOf(upstream, modelName.trim(), key.trim()), call.current.signal),
      );
    } catch (error) {
      const isStopped = call.current.signal.aborted;
      setWrong(
        isStopped
          ? 'Stopped. The call was cancelled, and left its queue.'
          : `Headgate did not respond: ${String(error)}`,
      );
    }
    setBusy(false);
  };

  const start = (): void => void send();

  return (
    <div class="test-call">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (isBusy) call.current?.abort();
          else start();
        }}
      >
        <div class="labelled">
          <label for="test-upstream">Upstream</label>
          <select
            id="test-upstream"
            value={upstream?.id ?? ''}
            onChange={({ currentTarget }) => setId(currentTarget.value)}
          >
            {callable.map((one) => (
              <option value={one.id}>{one.id}</option>
            ))}
          </select>
        </div>
        <div class="labelled">
          <label for="test-model">Model</label>
          <input
            id="test-model"
            value={modelName}
            required
            placeholder="gpt-4o-mini"
            spellcheck={false}
            onInput={({ currentTarget }) => setModel(currentTarget.value)}
          />
        </div>
        <div class="labelled">
          <label for="test-key">Key</label>
          <input
            id="test-key"
            type="password"
            autocomplete="off"
            value={key}
            placeholder="provider or gateway key"
            aria-describedby="test-call-help"
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </div>
        <button type="submit" class={isBusy ? '' : 'primary'} disabled={upstream === undefined}>
          {isBusy ? 'Stop' : 'Send'}
        </button>
      </form>
      <p id="test-call-help" class="help">
        Sends one short call, which the provider may charge for. The key goes to this address in the
        Authorization header. Neither the page nor its link stores it.
      </p>
      <div role="status" class="outcome-place">
        {isBusy && <p>Sent. The call queues if no slot is free.</p>}
        {wrong !== null && <p class="wrong">{wrong}</p>}
        {answered !== null && <CallAnswer answered={answered} />}
      </div>
    </div>
  );
}

async function sendCall(
  { path, headers, body }: ReturnType<typeof testCallOf>,
  signal: AbortSignal,
): Promise<TestCallAnswer> {
  const startedAt = performance.now();
  const response = await fetch(path, {
    method: 'POST',
    headers,
    body,
    signal,
    // Upstreams must not receive the cookie of this page.
    credentials: 'omit',
    cache: 'no-store',
  });
  const tookMs = performance.now() - startedAt;
  const text = await response.text();
  return {
    path,
    status: response.status,
    tookMs,
    headers: [...response.headers],
    text: text.slice(0, SHOWN_CHARS),
    isCut: text.length > SHOWN_CHARS,
  };
}
