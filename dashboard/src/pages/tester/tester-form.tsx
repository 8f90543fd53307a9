import { useEffect, useState } from 'preact/hooks';
import type { Problem } from '../../api.ts';
import { wrongIn, type TestedForm } from '../../model/tested-call.ts';
import { METHODS } from '../../../../src/contract/http.ts';
import { LANES } from '../../../../src/core/words/ticket.ts';
import { FingerprintHelper } from './fingerprint-helper.tsx';
import type { Choices } from './use-choices.ts';

const OPERATIONS = [
  ['chat', '…/chat/completions'],
  ['responses', '…/responses'],
  ['messages', '…/messages'],
  ['generate', '…:generateContent'],
  ['completions', '…/completions'],
  ['embeddings', '…/embeddings'],
  ['images', '…/images/generations'],
  ['audio_transcriptions', '…/audio/transcriptions'],
  ['audio_speech', '…/audio/speech'],
  ['moderations', '…/moderations'],
  ['rerank', '…/rerank'],
  ['converse', '…/converse'],
  ['invoke', '…/invoke'],
  ['ollama_chat', '/api/chat'],
] as const;

interface TesterFormProps {
  readonly form: TestedForm;
  readonly choices: Choices | null;
  readonly problem: Problem | null;
  readonly submit: (form: TestedForm) => void;
}

export function TesterForm({ form: asked, choices, problem, submit }: TesterFormProps) {
  const [form, setForm] = useState(asked);
  useEffect(() => setForm(asked), [JSON.stringify(asked)]);
  const [isTried, setTried] = useState(false);
  const found = choices === null ? {} : wrongIn(form, choices.keyIds);
  const wrong = isTried || asked.key !== '' ? found : {};
  const set = (name: keyof TestedForm) => ({
    id: `tester-${name}`,
    value: form[name],
    'aria-invalid': wrong[name] !== undefined,
    'aria-describedby': `tester-${name}-help`,
    onInput: (event: InputEvent & { readonly currentTarget: { readonly value: string } }) =>
      setForm({ ...form, [name]: event.currentTarget.value }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        if (choices !== null && Object.keys(found).length === 0) submit(form);
      }}
    >
      <label for="tester-model">Model</label>
      <input
        {...set('model')}
        placeholder="gpt-4o, or anthropic/claude-haiku-4-5"
        spellcheck={false}
      />
      <p id="tester-model-help" class="help">
        The model that the caller sends. A prefix names the upstream.
      </p>
      <label for="tester-upstream">Upstream</label>
      <select {...set('upstream')}>
        <option value="">chosen by model, as /v1 does</option>
        {[...new Set([...(choices?.upstreamIds ?? []), asked.upstream])]
          .filter(Boolean)
          .map((id) => (
            <option value={id}>{id}</option>
          ))}
      </select>
      <p id="tester-upstream-help" class="help">
        The upstream id in the path, or in headgate-upstream.
      </p>
      <label for="tester-operation">Operation</label>
      <select {...set('operation')}>
        {OPERATIONS.map(([name, path]) => (
          <option value={name}>
            {name} ({path})
          </option>
        ))}
        {OPERATIONS.every(([name]) => name !== asked.operation) && (
          <option value={asked.operation}>{asked.operation}</option>
        )}
      </select>
      <p id="tester-operation-help" class="help">
        The operation that the path stands for.
      </p>
      <Rest form={form} set={set} wrong={wrong} choices={choices} />
      <FingerprintHelper use={(fingerprint) => setForm({ ...form, key: fingerprint })} />
      {problem !== null && <p role="alert">{problem.detail}</p>}
      <button type="submit" class="primary" disabled={choices === null}>
        Show route
      </button>
    </form>
  );
}

function hasMore({ path, lane, headers, shape }: TestedForm): boolean {
  return path !== '' || lane !== '' || headers !== '' || shape !== 'openai';
}

interface RestProps {
  readonly form: TestedForm;
  readonly set: (name: keyof TestedForm) => object;
  readonly wrong: Partial<TestedForm>;
  readonly choices: Choices | null;
}

function Rest({ form, set, wrong, choices }: RestProps) {
  return (
    <>
      <label for="tester-key">Key</label>
      <input
        {...set('key')}
        list="tester-keys"
        placeholder="team-search or fp_…"
        autocomplete="off"
        spellcheck={false}
      />
      <datalist id="tester-keys">
        {choices?.keyIds.map((id) => (
          <option value={id} />
        ))}
      </datalist>
      <p id="tester-key-help" class="help">
        {wrong.key !== undefined && <strong class="wrong">{wrong.key} </strong>}
        Id of a gateway key, or fingerprint of a provider key. Do not enter a key.
      </p>
      <details open={hasMore(form)}>
        <summary>Path, lane, headers, shape</summary>
        <label for="tester-path">Path after the base URL</label>
        <input {...set('path')} placeholder="/v1/custom/run" spellcheck={false} />
        <p id="tester-path-help" class="help">
          Determines the operation instead of the field above. Groups can also match the path.
        </p>
        <label for="tester-method">Method</label>
        <select {...set('method')}>
          {METHODS.map((method) => (
            <option value={method}>{method}</option>
          ))}
        </select>
        <p id="tester-method-help" class="help">
          HTTP method of the call to the path.
        </p>
        <label for="tester-lane">Requested lane</label>
        <select {...set('lane')}>
          <option value="">none</option>
          {LANES.map((lane) => (
            <option value={lane}>{lane}</option>
          ))}
        </select>
        <p id="tester-lane-help" class="help">
          The value of headgate-lane. The key and the group can lower it.
        </p>
        <label for="tester-headers">Headers that groups are split by</label>
        <textarea {...set('headers')} rows={2} placeholder="x-team: search" spellcheck={false} />
        <p id="tester-headers-help" class="help">
          {wrong.headers !== undefined && <strong class="wrong">{wrong.headers} </strong>}
          One per line.
        </p>
        <label for="tester-shape">Shape of a call to /v1</label>
        <select {...set('shape')}>
          <option value="openai">OpenAI</option>
          <option value="anthropic">Anthropic</option>
        </select>
        <p id="tester-shape-help" class="help">
          Chooses between upstreams that support both.
        </p>
      </details>
    </>
  );
}
