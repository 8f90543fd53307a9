import { DIALECTS } from '../../../../src/contract/http.ts';
import { secretNameFor, type UpstreamForm } from '../../model/upstream-form.ts';
import type { UpstreamInfo } from '../../model/upstream-view.ts';
import { FormField, type FieldText, type TextName } from './form-field.tsx';
import { useHelp } from './use-help.ts';

interface UpstreamFieldsProps {
  readonly form: UpstreamForm;
  readonly change: (form: UpstreamForm) => void;
  readonly isNew: boolean;
  /** Upstreams whose ids are suggested. */
  readonly known: readonly UpstreamInfo[];
  /** Values of empty fields. null if the upstream is not built in. */
  readonly builtIn: UpstreamInfo | null;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
}

/** Fields of an upstream, with help and the errors of the server. */
export function UpstreamFields({
  form,
  change,
  isNew,
  known,
  builtIn,
  errors,
}: UpstreamFieldsProps) {
  const help = useHelp();
  const field = (text: FieldText) => (
    <FormField
      key={text.name}
      text={text}
      help={help.get(text.path ?? text.name) ?? ''}
      value={form[text.name]}
      errors={errors}
      change={(value) => change({ ...form, [text.name]: value })}
    />
  );
  const tick = (name: 'enabled' | 'inject_usage' | 'is_keyless', label: string) => (
    <label class="tick">
      <input
        type="checkbox"
        checked={form[name]}
        onChange={({ currentTarget }) => change({ ...form, [name]: currentTarget.checked })}
      />{' '}
      {label}
    </label>
  );
  return (
    <>
      {isNew && field({ ...ID, choices: known.map(({ id }) => id) })}
      {mainFields(builtIn, form.id).map(field)}
      {tick('is_keyless', 'Needs no key (Headgate sends none)')}
      {tick('enabled', 'Enabled')}
      <details open={errors.some(({ path }) => !MAIN_PATHS.has(path))}>
        <summary>More</summary>
        {moreFields(builtIn).map(field)}
        {tick('inject_usage', 'Request the usage of OpenAI streams for callers')}
        <p class="help">To change prices, use Import / export.</p>
      </details>
    </>
  );
}

const MAIN_PATHS: ReadonlySet<string> = new Set(['id', 'base_url', 'dialect', 'auth']);

const ID: FieldText = {
  name: 'id',
  label: 'Id',
  placeholder: 'my-vllm',
  isRequired: true,
};

function mainFields(builtIn: UpstreamInfo | null, id: string): readonly FieldText[] {
  const byDefault = builtIn === null ? 'openai (default)' : `${builtIn.dialect} (built in)`;
  return [
    {
      name: 'base_url',
      label: 'Base URL',
      placeholder: builtIn?.base_url ?? 'https://llm.example.com',
      isRequired: builtIn === null,
    },
    {
      name: 'dialect',
      label: 'Dialect',
      options: [['', byDefault], ...DIALECTS.map((one) => [one, one] as const)],
    },
    {
      name: 'secret',
      path: 'auth',
      label: "Secret name of the operator's key",
      placeholder: secretNameFor(id),
    },
  ];
}

function moreFields(builtIn: UpstreamInfo | null): readonly FieldText[] {
  const names: readonly (readonly [TextName, string, string, boolean?])[] = [
    ['models', 'Models', builtIn?.models.join('\n') ?? 'llama-*', true],
    ['allow', 'Also allowed', 'files', true],
    ['aliases', 'Aliases', 'prod-deployment-7 = gpt-4o', true],
    ['openai_at', 'OpenAI routes at', builtIn?.openai_at ?? '/v1'],
    ['anthropic_at', 'Anthropic routes at', builtIn?.anthropic_at ?? '/v1'],
    ['via', 'Via', 'PRIVATE_NETWORK'],
    ['account_by', 'Account of a key', 'claim:sub'],
    ['webhook_secret', 'Webhook secret', 'WEBHOOK_OPENAI_SECRET'],
  ];
  return [
    ...names.map(([name, label, placeholder, isLong = false]) => ({
      name,
      label,
      placeholder,
      isLong,
    })),
    {
      name: 'limit_headers',
      label: 'Rate-limit headers',
      options: ['auto', 'use', 'ignore'].map((one) => [one, one] as const),
    },
    {
      name: 'websocket',
      label: 'WebSockets',
      options: ['auto', 'session', 'turns', 'off'].map((one) => [one, one] as const),
    },
  ];
}
