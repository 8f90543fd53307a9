import { useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import { version } from '../../feed.ts';
import { duration } from '../../format.ts';
import { may } from '../../session.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { useAnswer } from '../../ui/use-answer.ts';

type Format = 'generic' | 'slack';
type ShownWebhook = NonNullable<
  Extract<Awaited<ReturnType<typeof read>>, { ok: true }>['body']['webhook']
>;
type WebhookTest = Awaited<ReturnType<typeof test>>;

const read = () => api('GET /webhook');
const test = () => api('POST /webhook/test');

/** Shows, sets, tests and removes the webhook for warnings. Its URL is never shown again in full. */
export function WebhookSection() {
  const [answer, again] = useAnswer(read, [version.value]);
  const shown = answer?.ok === true ? answer.body.webhook : null;
  return (
    <section id="webhook" aria-labelledby="setup-webhook" aria-busy={answer === null}>
      <h2 id="setup-webhook">Warnings</h2>
      <p class="help">
        Groups warn when a limit is nearly used up, a budget is spent, an upstream fails, and more.
        Warnings appear on these pages and in the log, and can be sent to one webhook.
      </p>
      {answer?.ok === false && <p role="alert">{answer.problem.detail}</p>}
      <p class="sent-to">
        {answer?.ok === true && shown === null && 'No webhook is set.'}
        {shown !== null && <SentTo webhook={shown} />}
      </p>
      {may('admin') ? (
        answer?.ok === true && <WebhookForm key={formKey(shown)} shown={shown} changed={again} />
      ) : (
        <p class="help">Changing or testing the webhook requires the admin role.</p>
      )}
    </section>
  );
}

/** Resets the form when the webhook is changed elsewhere. */
function formKey(shown: ShownWebhook | null): string {
  return `${shown?.address} ${shown?.format} ${shown?.secret}`;
}

function SentTo({
  webhook: { address, format, secret, secret_fault, kinds },
}: {
  readonly webhook: ShownWebhook;
}) {
  return (
    <>
      Warnings are sent to <code>{address}</code>,{' '}
      {format === 'slack' ? 'as Slack messages' : 'as JSON'}
      {secret !== null && (
        <>
          , signed with <code>{secret}</code>
        </>
      )}
      {kinds !== null && `; only ${kinds.map((kind) => kind.replaceAll('_', ' ')).join(', ')}`}.
      {secret_fault !== null && <strong class="missing"> That secret {secret_fault}.</strong>}
    </>
  );
}

interface FormProps {
  readonly shown: ShownWebhook | null;
  readonly changed: () => void;
}

function WebhookForm({ shown, changed }: FormProps) {
  const [url, setUrl] = useState('');
  const [format, setFormat] = useState<Format>(shown?.format ?? 'slack');
  const [secret, setSecret] = useState(shown?.secret ?? '');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [tested, setTested] = useState<WebhookTest | 'busy' | null>(null);

  const save = async (): Promise<void> => {
    const body = {
      ...(url.trim() === '' ? {} : { url: url.trim() }),
      format,
      secret: secret.trim() === '' ? null : secret.trim(),
      kinds: shown === null || shown.kinds === null ? null : [...shown.kinds],
    };
    const result = await api('PUT /webhook', { body });
    setProblem(result.ok ? null : result.problem);
    setTested(null);
    if (!result.ok) return;
    say('Saved. Send a test to check it.');
    for (const warning of result.body.warnings) complain(warning);
    changed();
  };
  const sendTest = async (): Promise<void> => {
    setTested('busy');
    setTested(await test());
  };
  const remove = async (): Promise<void> => {
    const says = <p>Warnings still appear in the log and on these pages.</p>;
    if (!(await confirm({ title: 'Remove the webhook?', says, verb: 'Remove webhook' }))) return;
    const result = await api('DELETE /webhook');
    if (result.ok) changed();
    else complain(result.problem.detail);
  };

  return (
    <div class="test-call">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save().catch(() => complain('The webhook could not be saved. Try again.'));
        }}
      >
        <div class="labelled">
          <label for="webhook-url">URL</label>
          <input
            id="webhook-url"
            type="url"
            autocomplete="off"
            spellcheck={false}
            required={shown === null}
            placeholder={shown === null ? 'https://hooks.slack.com/services/…' : 'unchanged'}
            value={url}
            onInput={({ currentTarget }) => setUrl(currentTarget.value)}
          />
        </div>
        <div class="labelled">
          <label for="webhook-format">Format</label>
          <select
            id="webhook-format"
            value={format}
            onChange={({ currentTarget }) => setFormat(currentTarget.value as Format)}
          >
            <option value="slack">Slack</option>
            <option value="generic">generic, signed</option>
          </select>
        </div>
        <div class="labelled">
          <label for="webhook-secret">Secret name</label>
          <input
            id="webhook-secret"
            spellcheck={false}
            autocomplete="off"
            required={format === 'generic'}
            placeholder={format === 'slack' ? 'none' : 'WEBHOOK_SECRET'}
            value={secret}
            onInput={({ currentTarget }) => setSecret(currentTarget.value)}
          />
        </div>
        <button type="submit" class="primary">
          Save
        </button>
        <button
          type="button"
          disabled={shown === null || tested === 'busy'}
          onClick={() => void sendTest()}
        >
          Send test
        </button>
        {shown !== null && (
          <button type="button" onClick={() => void remove()}>
            Remove webhook
          </button>
        )}
      </form>
      <div role="status" class="webhook-outcome">
        {problem !== null && <Problems problem={problem} />}
        {tested === 'busy' && <p>Sent. Waiting for the receiver, up to 10 seconds…</p>}
        {tested !== null && tested !== 'busy' && <TestOutcome tested={tested} />}
      </div>
    </div>
  );
}

function Problems({ problem }: { readonly problem: Problem }) {
  const errors = problem.errors ?? [];
  if (errors.length === 0) return <p class="wrong">{problem.detail}</p>;
  return (
    <>
      {errors.map(({ path, message }) => (
        <p class="wrong" key={path}>
          {path}: {message}
        </p>
      ))}
    </>
  );
}

function TestOutcome({ tested }: { readonly tested: WebhookTest }) {
  if (!tested.ok) return <p class="wrong">{tested.problem.detail}</p>;
  const { delivered, status, answer, error, took_ms: tookMs } = tested.body;
  return (
    <>
      <p>
        <b class={delivered ? 'good' : 'wrong'}>
          {delivered ? '✓' : '✕'} {status ?? 'no response'}
        </b>{' '}
        {delivered ? 'The receiver accepted it' : `Delivery failed: ${error}`}, after{' '}
        {duration(tookMs)}.
      </p>
      {answer !== '' && (
        <pre tabIndex={0} role="region" aria-label="Response of the receiver">
          {answer}
        </pre>
      )}
    </>
  );
}
