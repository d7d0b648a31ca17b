CREATE PROCEDURE grade(points integer, INOUT r text) LANGUAGE plpgsql AS $$
BEGIN
  IF points >= 90 THEN
    r := 'A';
  ELSIF points >= 80 THEN
    r := 'B';
  ELSEIF points >= 70 THEN
    r := 'C';
  ELSE
    IF points < 0 THEN
      r := 'impossible';
    ELSE
      r := 'D';
    END IF;
  END IF;
END;
$$;
CALL grade(95, '');
CALL grade(85, '');
CALL grade(75, '');
CALL grade(5, '');
CALL grade(-5, '');
