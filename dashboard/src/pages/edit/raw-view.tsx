import { useEffect, useMemo, useState } from 'preact/hooks';
import type * as ConfigText from '../../model/config-text.ts';
import type { FormState } from '../../form/schema-field.tsx';
import { isSame, type EditedDocument } from '../../model/document.ts';
import { useAnswer } from '../../ui/use-answer.ts';
import type { FieldError } from '../../model/field-errors.ts';

type TextModule = typeof ConfigText;

export function RawView(props: {
  readonly form: FormState;
  readonly errors: readonly FieldError[];
  readonly onChange: (document: EditedDocument) => void;
  readonly onReadable: (isReadable: boolean) => void;
}) {
  const { form, errors, onChange, onReadable } = props;
  const [module] = useAnswer(() => import('../../model/config-text.ts'), []);
  const [typed, setTyped] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const written = useMemo(() => module?.yamlOf(form.draft) ?? '', [module]);
  const text = typed ?? written;
  useEffect(() => () => onReadable(true), []);

  const type = (next: string): void => {
    setTyped(next);
    if (module === null) return;
    const read = documentIn(module, next);
    setProblem(typeof read === 'string' ? read : null);
    onReadable(typeof read !== 'string');
    if (typeof read !== 'string' && !isSame(read, form.draft)) onChange(read);
  };

  return (
    <section class="raw" aria-busy={module === null}>
      <label for="raw">The group as YAML or JSON</label>
      <div id="raw-errors" class="errors">
        {problem !== null && <p>{problem}</p>}
        {problem === null &&
          errors.map(({ path, message }) => (
            <p key={path + message}>
              {module !== null && <>line {module.lineOf(text, path)}: </>}
              <code>{path}</code> {message}
            </p>
          ))}
      </div>
      <textarea
        id="raw"
        value={text}
        onInput={(event) => type(event.currentTarget.value)}
        rows={Math.min(40, Math.max(16, text.split('\n').length + 1))}
        spellcheck={false}
        disabled={module === null}
        aria-describedby="raw-errors"
        aria-invalid={problem !== null || errors.length > 0}
      />
    </section>
  );
}

function documentIn(module: TextModule, text: string): EditedDocument | string {
  try {
    const read = module.parseConfigText(text, null);
    const isObject = typeof read === 'object' && read !== null && !Array.isArray(read);
    return isObject ? (read as EditedDocument) : 'Enter the fields of one group.';
  } catch (error) {
    if (error instanceof module.ConfigSyntaxError) return error.message;
    throw error;
  }
}
