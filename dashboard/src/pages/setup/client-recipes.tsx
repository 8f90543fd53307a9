import { useState } from 'preact/hooks';
import { complain, say } from '../../ui/toasts.tsx';
import { recipesFor } from './recipes.ts';

/** Texts to copy, for this very address. */
export function ClientRecipes() {
  const recipes = recipesFor(location.origin);
  const [chosen, setChosen] = useState(recipes[0]?.id);
  const recipe = recipes.find(({ id }) => id === chosen);
  if (recipe === undefined) return null;
  return (
    <div class="recipes">
      <div class="choices" role="group" aria-label="Client">
        {recipes.map(({ id, name }) => (
          <button type="button" aria-pressed={id === chosen} onClick={() => setChosen(id)}>
            {name}
          </button>
        ))}
      </div>
      <div class="code">
        <pre tabIndex={0} role="region" aria-label={`Set-up of ${recipe.name}`}>
          {recipe.code}
        </pre>
        <button type="button" onClick={() => void copy(recipe.code)}>
          Copy
        </button>
      </div>
      <p class="help">{recipe.note}</p>
    </div>
  );
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say('Copied.');
  } catch {
    // On plain http to another machine browsers have no clipboard.
    complain('This browser does not let the page copy. Select the text, and copy it by hand.');
  }
}
