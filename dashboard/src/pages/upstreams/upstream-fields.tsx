import { DIALECTS } from '../../../../src/contract/dialect.ts';
import type { UpstreamForm } from '../../model/upstream-form.ts';
import type { UpstreamInfo } from '../../model/upstream-view.ts';
import { FormField, type FieldText, type TextName } from './form-field.tsx';

interface Props {
  readonly form: UpstreamForm;
  readonly change: (form: UpstreamForm) => void;
  readonly isNew: boolean;
  /** Values that hold where a field is left empty; null: it is not built in. */
  readonly builtIn: UpstreamInfo | null;
  readonly errors: readonly { readonly path: string; readonly message: string }[];
}

/** The fields of an upstream, each with its help and what the server found wrong with it. */
export function UpstreamFields({ form, change, isNew, builtIn, errors }: Props) {
  const field = (text: FieldText) => (
    <FormField
      key={text.name}
      text={text}
      value={form[text.name]}
      errors={errors}
      change={(value) => change({ ...form, [text.name]: value })}
    />
  );
  const tick = (name: 'enabled' | 'inject_usage', label: string) => (
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
      {isNew && field(ID)}
      {mainFields(builtIn).map(field)}
      {tick('enabled', 'Takes calls')}
      <details open={errors.some(({ path }) => !MAIN_PATHS.has(path))}>
        <summary>More</summary>
        {moreFields(builtIn).map(field)}
        {tick('inject_usage', 'Ask for the usage of OpenAI streams on behalf of callers')}
        <p class="help">Prices are changed by import and export.</p>
      </details>
    </>
  );
}

const MAIN_PATHS: ReadonlySet<string> = new Set(['id', 'base_url', 'dialect', 'auth']);

const ID: FieldText = {
  name: 'id',
  label: 'Id',
  help: 'Callers reach it at /id/…; it cannot be changed later.',
  placeholder: 'my-vllm',
  isRequired: true,
};

function mainFields(builtIn: UpstreamInfo | null): readonly FieldText[] {
  const byDefault = builtIn === null ? 'openai (default)' : `${builtIn.dialect} (built in)`;
  return [
    {
      name: 'base_url',
      label: 'Base URL',
      help: 'Calls to /id/rest go to rest behind this address.',
      placeholder: builtIn?.base_url ?? 'https://llm.example.com',
      isRequired: builtIn === null,
    },
    {
      name: 'dialect',
      label: 'Dialect',
      help: 'The shape of its API: where models, tokens and refusals stand. opaque: nothing is known of its bodies.',
      options: [['', byDefault], ...DIALECTS.map((one) => [one, one] as const)],
    },
    {
      name: 'secret',
      path: 'auth',
      label: "Secret with the operator's key",
      help: 'Name of a Worker secret, UPSTREAM_…. Empty: the key that callers bring passes on.',
      placeholder: 'UPSTREAM_MY_KEY',
    },
  ];
}

function moreFields(builtIn: UpstreamInfo | null): readonly FieldText[] {
  const names: readonly (readonly [TextName, string, string, string, boolean?])[] = [
    [
      'models',
      'Models',
      'Patterns of the models that /v1 sends here, one a line.',
      builtIn?.models.join('\n') ?? 'llama-*',
      true,
    ],
    [
      'allow',
      'Also open',
      "Operations without a slot that are open to everybody with the operator's key, one a line.",
      'files',
      true,
    ],
    [
      'aliases',
      'Aliases',
      'Names that stand for a model in matching: an Azure deployment, an ARN. One a line.',
      'prod-deployment-7 = gpt-4o',
      true,
    ],
    [
      'openai_at',
      'OpenAI routes at',
      'Path under the base URL where OpenAI-shaped routes begin.',
      builtIn?.openai_at ?? '/v1',
    ],
    [
      'anthropic_at',
      'Anthropic routes at',
      'Path under the base URL where …/messages begins.',
      builtIn?.anthropic_at ?? '/v1',
    ],
    [
      'via',
      'Via',
      'Name of a service or VPC binding that carries the calls. Empty: the public network.',
      'PRIVATE_NETWORK',
    ],
  ];
  return [
    ...names.map(([name, label, help, placeholder, isLong = false]) => ({
      name,
      label,
      help,
      placeholder,
      isLong,
    })),
    {
      name: 'limit_headers',
      label: 'Its rate-limit headers',
      help: 'auto: believed where the built-in profile says so.',
      options: ['auto', 'use', 'ignore'].map((one) => [one, one] as const),
    },
  ];
}
