import { useState } from 'preact/hooks';
import { SAMPLES } from '../../model/samples.ts';
import { useLeaveGuard } from '../../ui/leave-guard.ts';
import { ImportResult } from './import-result.tsx';
import { useImport } from './use-import.ts';

/** Imports a configuration from a file, the clipboard or an example. Nothing applies before the review. */
export function ImportSection() {
  const [text, setText] = useState('');
  const { state, isBusy, check, apply, reopen } = useImport();
  useLeaveGuard(text.trim() !== '' && state.kind !== 'applied');
  const take = (next: string): void => {
    setText(next);
    reopen();
  };
  const open = async (input: HTMLInputElement): Promise<void> => {
    const [file] = input.files ?? [];
    if (file !== undefined) take(await file.text());
    // Allows choosing the same file again after an edit.
    input.value = '';
  };
  return (
    <section class="import" aria-labelledby="import">
      <h2 id="import">Import</h2>
      <p class="help">
        A YAML or JSON configuration replaces everything: what it does not contain is removed. Admin
        keys stay if it does not mention them. Lists of concurrency groups, and of rate limits by
        model, are accepted too, and replace only the groups.
      </p>
      <div class="sources">
        <label class="button">
          Choose a file
          <input
            type="file"
            class="visually-hidden"
            accept=".yaml,.yml,.json,application/json,application/yaml,text/plain"
            onChange={(event) => void open(event.currentTarget)}
          />
        </label>
        <select
          aria-label="Example"
          value=""
          onChange={(event) => take(SAMPLES[Number(event.currentTarget.value)]?.text ?? '')}
        >
          <option value="" disabled>
            Start from an example…
          </option>
          {SAMPLES.map(({ name }, at) => (
            <option key={name} value={at}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <label for="import-text">Configuration</label>
      <textarea
        id="import-text"
        value={text}
        onInput={(event) => take(event.currentTarget.value)}
        rows={Math.min(30, Math.max(10, text.split('\n').length + 1))}
        spellcheck={false}
        autocomplete="off"
        aria-describedby="import-result"
        aria-invalid={state.kind === 'wrong'}
      />
      {state.kind !== 'checked' && (
        <div class="actions">
          <button type="button" class="primary" disabled={isBusy} onClick={() => void check(text)}>
            Review changes
          </button>
        </div>
      )}
      <div id="import-result">
        <ImportResult
          state={state}
          isBusy={isBusy}
          onApply={() => void apply(text)}
          onCancel={reopen}
        />
      </div>
    </section>
  );
}
