function render({ model, el }) {
  prepare(el, "labkit-quiz");
  const quizzes = model.get("quizzes");
  const tried = new Set(Object.keys(model.get("answers")));
  const score = element("p", { className: "labkit-score", role: "status" });

  const count = (quiz, index) => {
    const answers = { ...model.get("answers"), [quiz.id]: index };
    const rightAtOnce = !tried.has(quiz.id) && quiz.options[index].isRight;
    tried.add(quiz.id);
    model.set("score", quizzes.filter((q) => q.options[answers[q.id]]?.isRight).length);
    model.set("first_try", model.get("first_try") + (rightAtOnce ? 1 : 0));
    model.set("answers", answers); // last: the score line listens to it
    model.save_changes();
  };
  const showScore = () => {
    const [right, atOnce] = [model.get("score"), model.get("first_try")];
    score.textContent =
      `Score: ${right} of ${quizzes.length} right, ${atOnce} of them at the first try.`;
  };

  quizzes.forEach((quiz, index) => {
    el.append(question(quiz, index + 1, model.get("answers")[quiz.id], count));
  });
  el.append(score);
  showScore();
  model.on("change:answers", showScore);
  replaceTwin(el);
  return () => model.off("change:answers", showScore);
}

/** One question. `answered`: index of the option checked earlier, or undefined. */
function question(quiz, number, answered, count) {
  const group = groupName();
  const feedback = element("p", { className: "labkit-feedback", "aria-live": "polite" });
  const radios = quiz.options.map(() => element("input", { type: "radio", name: group }));
  const options = quiz.options.map((option, i) =>
    element(
      "label",
      { className: "labkit-option" },
      radios[i],
      element("span", { innerHTML: `${letter(i)}. ${option.text}` }),
    ),
  );
  const explain = (index) => {
    const option = quiz.options[index];
    const verdict = option.isRight ? "✓ Right." : "✗ Not right.";
    feedback.classList.toggle("labkit-right", option.isRight);
    feedback.innerHTML = `<strong>${verdict}</strong> ${option.explains}`;
  };
  const check = element("button", { type: "button", textContent: "Check" });
  check.setAttribute("aria-label", `Check the answer to question ${number}`);
  check.addEventListener("click", () => {
    const index = radios.findIndex((radio) => radio.checked);
    if (index < 0) {
      feedback.textContent = "Choose an answer first.";
      return;
    }
    count(quiz, index);
    explain(index);
  });
  for (const radio of radios) {
    radio.addEventListener("change", () => (feedback.textContent = ""));
  }
  if (answered !== undefined) {
    radios[answered].checked = true;
    explain(answered);
  }
  const legend = element("legend", { innerHTML: `${number}. ${quiz.question}` });
  const exhibit = element("div", { className: "labkit-exhibit", innerHTML: quiz.exhibit ?? "" });
  return element("fieldset", {}, legend, exhibit, ...options, check, feedback);
}

/** The letter of an option, as the quiz in the saved page has it. */
function letter(index) {
  return String.fromCharCode("A".charCodeAt(0) + index);
}

/**
 * A name for one question's radio buttons that nothing else in the page has. Each quiz has a module
 * of its own, so counting would not do; a page without https has no randomUUID.
 */
function groupName() {
  return `labkit-quiz-${crypto.randomUUID?.() ?? Math.random()}`;
}

export default { render };
